"""qabias: social-bias measurement for question answering and inference models."""

__version__ = "0.1.0"
