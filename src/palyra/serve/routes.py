"""The whole route table: the kernel's rows, and those of every feature that is registered."""

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from palyra.api import table
from palyra.api.routes import Route
from palyra.features import FEATURES, Feature


def routes_of(features: Iterable[Feature]) -> tuple[Route[Any, Any], ...]:
    """The rows for these features. `ROUTES` of a feature's `http` are its rows; `rows_over` gives
    rows that are made from all others.
    """
    rows: tuple[Route[Any, Any], ...] = table.ROUTES
    last = []
    for feature in features:
        if find_spec(f"{feature.module}.http") is None:
            continue
        door = import_module(f"{feature.module}.http")
        rows += getattr(door, "ROUTES", ())
        if over := getattr(door, "rows_over", None):
            last.append(over)
    for over in last:
        rows += over(rows)
    return rows


ROUTES = routes_of(FEATURES)
