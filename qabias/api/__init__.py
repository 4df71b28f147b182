"""The functions behind `import qabias`, and what they return."""
