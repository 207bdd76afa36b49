"""The dashboard, the alert rules and the reference name metrics that exist."""

import json
import re
from pathlib import Path

import yaml

from tests import daemon as process

ROOT = Path(__file__).parents[2]
_METRIC = re.compile(r"(?<![\w…])((?:palyra|process)_[a-z_]+?)(?:_bucket|_sum|_count)?(?![a-z_])")
_ALERTS = ROOT / "examples" / "prometheus" / "alerts.yml"
_DASHBOARD = ROOT / "examples" / "grafana" / "palyra.json"


def _expressions() -> list[str]:
    rules = yaml.safe_load(_ALERTS.read_text())["groups"][0]["rules"]
    panels = json.loads(_DASHBOARD.read_text())["panels"]
    return [
        *(rule["expr"] for rule in rules),
        *(target["expr"] for panel in panels for target in panel["targets"]),
    ]


def test_every_metric_that_is_named_exists(tmp_path: Path) -> None:
    with process.start(tmp_path, script={"*": [{"text": "hi"}]}) as daemon:
        text = daemon.request("GET", "/metrics").body.decode()
    there = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    named = {name for each in _expressions() for name in _METRIC.findall(each)}
    assert len(named) > 15
    assert named <= there
    reference = (ROOT / "docs" / "reference" / "telemetry.md").read_text()
    written = {name for name in _METRIC.findall(reference) if not name.endswith("_")}
    assert written - there <= {"palyra_tasks", "palyra_workers"}
    assert {name for name in there if name.startswith("palyra_")} - written <= {
        each
        for each in there
        if each.startswith(("palyra_tasks", "palyra_workers", "palyra_model"))
    }
