"""Cases of Cedar's own corpus, through our reading of files and our way of asking: the decisions
must be the expected ones.
"""

import json
from pathlib import Path

import cedarpy

from palyra.policy import judge, sources
from palyra.policy.policy_set import Slice
from tests.material import material


def decisions(folder: Path, name: str) -> tuple[list[str], list[str], bool, bool]:
    """What we decide, what is expected, whether we find problems, whether some are expected."""
    case = json.loads((folder / f"{name}.json").read_text())
    text = (folder / f"{name}.cedar").read_text()
    schema = cedarpy.Schema.from_str((folder / f"{name}.cedarschema").read_text())
    rules, _ = sources.parse(f"{name}.cedar", text)
    _, problems = sources.read(f"{name}.cedar", text, schema)
    part = Slice(
        rules=tuple(rules),
        cedar=cedarpy.PolicySet.from_str("\n".join(rule.text for rule in rules)),
        uses=frozenset(),
        entities=cedarpy.Entities.from_json_str((folder / f"{name}.entities.json").read_text()),
    )
    requests = [
        {key: asked[key] for key in ("principal", "action", "resource")}
        | {"context": json.dumps(asked["context"])}
        for asked in case["requests"]
    ]
    found = ["allow" if answer.permitted else "deny" for answer in judge.decide(part, requests)]
    return (
        found,
        [asked["decision"] for asked in case["requests"]],
        bool(problems),
        not case["shouldValidate"],
    )


def test_the_corpus_is_decided_and_validated_as_expected() -> None:
    folder = material("cedar")
    names = sorted(path.stem for path in folder.glob("*.cedar"))
    assert len(names) >= 12
    for name in names:
        found, expected, problems, broken = decisions(folder, name)
        assert (name, found, problems) == (name, expected, broken)
