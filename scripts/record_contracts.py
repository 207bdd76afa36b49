"""Record anew what users rely on and tests/architecture compares with.

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
    known = [*contracts.READERS, SHAPES]
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        sys.stderr.write(f"error: unknown: {', '.join(unknown)}; choose from {', '.join(known)}\n")
        return 2
    for name in wanted:
        if name == SHAPES:
            contracts.save(
                name, json_shapes.merged([json_shapes.json_shapes() for _ in range(RUNS)])
            )
        else:
            contracts.save(name, contracts.READERS[name]())
        sys.stdout.write(f"recorded {name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
