"""Tests of qabias."""
