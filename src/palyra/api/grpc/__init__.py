"""The gRPC door. Importing it is the choice to have it: nothing else of the daemon does."""

import os

# gRPC would stop its threads around every fork and say so in the log. Nothing that forks here uses
# gRPC afterwards: it becomes another program at once.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
