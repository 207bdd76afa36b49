"""The door of the command line. It imports nothing that `--version` does not need, so that asking
costs a few milliseconds.
"""

import sys

import palyra


def main(arguments: list[str] | None = None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:
        sys.stdout.write(f"palyra {palyra.__version__}\n")
        return 0
    from palyra.cli.root import run

    return run(given)


if __name__ == "__main__":
    sys.exit(main())
