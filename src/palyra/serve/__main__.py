"""`python -m palyra.serve [--home FOLDER] [--port N] [--quic]`: the daemon without the command line
around it.
"""

import argparse
import os
import sys

from palyra.core.errors import PalyraError
from palyra.serve import config, restart


def main() -> int:
    parser = argparse.ArgumentParser(prog="palyra.serve")
    parser.add_argument("--home", default=None)
    parser.add_argument("--port", type=int, default=None)
    parser.add_argument("--quic", action="store_true")
    given = parser.parse_args()
    try:
        home = config.home_folder(given.home, os.environ)
        restart.supervise_early(home, os.environ)
        # Late: what comes before needs none of it.
        from palyra.serve.process import serve

        serve(home, port=given.port, quic=given.quic)
    except PalyraError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
