"""Written by scripts/clients.py: what the daemon answers, one module for each area of the API."""
