"""A plugin of pytest for scripts/run_tests.py: writes the names of the tests that failed into a
file, one a line, as they fail.
"""

from pathlib import Path

import pytest


class FailedTests:
    """Writes each name once."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._seen: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and report.nodeid not in self._seen:
            self._seen.add(report.nodeid)
            with self._target.open("a") as file:
                file.write(f"{report.nodeid}\n")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--failed-to", metavar="FILE", help="write the names of failed tests into this file"
    )


def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist report to the process that started them; that one knows of all.
    target = config.getoption("--failed-to")
    if target and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailedTests(Path(target)))
