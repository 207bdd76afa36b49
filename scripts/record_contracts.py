"""Record anew what tests/architecture compares with: what users rely on, and which rules of the
tree are still broken.

python scripts/record_contracts.py                     # everything
python scripts/record_contracts.py settings commands   # only these
    python scripts/record_contracts.py violations          # after one was mended
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.architecture import contracts, json_shapes, rules

SHAPES = "json_shapes"
VIOLATIONS = "violations"
# What the commands print depends a little on how long things took.
RUNS = 3


def main() -> int:
    wanted = sys.argv[1:] or [*contracts.READERS, SHAPES]
    known = [*contracts.READERS, SHAPES, VIOLATIONS]
    unknown = sorted(set(wanted) - set(known))
    if unknown:
        sys.stderr.write(f"error: unknown: {', '.join(unknown)}; choose from {', '.join(known)}\n")
        return 2
    for name in wanted:
        if name == SHAPES:
            contracts.save(
                name, json_shapes.merged([json_shapes.json_shapes() for _ in range(RUNS)])
            )
        elif name == VIOLATIONS:
            contracts.save(name, rules.violations())
        else:
            contracts.save(name, contracts.READERS[name]())
        sys.stdout.write(f"recorded {name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
