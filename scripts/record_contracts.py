"""Record anew what users and programs rely on, after a change that is meant:
tests/architecture/recorded.

python scripts/record_contracts.py                     # everything
python scripts/record_contracts.py settings commands   # only these
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.architecture import contracts, json_shapes

SHAPES = "json_shapes"
# What the commands print depends a little on how long things took.
RUNS = 3


def main() -> int:
    wanted = sys.argv[1:] or [*contracts.READERS, SHAPES]
    unknown = sorted(set(wanted) - {*contracts.READERS, SHAPES})
    if unknown:
        sys.stderr.write(
            f"error: unknown: {', '.join(unknown)}; choose from"
            f" {', '.join([*contracts.READERS, SHAPES])}\n"
        )
        return 2
    for name in wanted:
        reader = contracts.READERS.get(name)
        contracts.save(
            name,
            (
                reader()
                if reader
                else json_shapes.merged([json_shapes.json_shapes() for _ in range(RUNS)])
            ),
        )
        sys.stdout.write(f"recorded {name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
