"""The messages and services of the gRPC door, made by scripts/protos.py; a client needs nothing else of this package."""
