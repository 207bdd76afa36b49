"""Running the daemon as a process: `serve` is all there is to call."""

from palyra.serve.process import serve

__all__ = ["serve"]
