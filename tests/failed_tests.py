"""A plugin of pytest for scripts/run_tests.py: writes the names of the tests that failed into a
file, one a line.
"""

from pathlib import Path

import pytest

_failed: dict[str, None] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--failed-to", metavar="FILE", help="write the names of failed tests into this file"
    )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


def pytest_sessionfinish(session: pytest.Session) -> None:
    # Workers of pytest-xdist report to the process that started them; that one knows of all.
    target = session.config.getoption("--failed-to")
    if target and not hasattr(session.config, "workerinput"):
        Path(target).write_text("".join(f"{name}\n" for name in _failed))
