"""Palyra: a self-hosted agent daemon that is exact, safe and provable."""

__version__ = "0.1.0"
