"""Packages whose parts are used without what the package itself imports."""

import importlib
import importlib.util
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


def open_lightly(name: str, found_in: Mapping[str, str]) -> None:
    """Make the modules of a package importable without running the package's own code. Does nothing
    if that has run already.

    `found_in` says which module has an attribute of the package. For any other the package runs
    after all, so whoever uses it in the usual way gets what they expect.
    """
    spec = importlib.util.find_spec(name) if name not in sys.modules else None
    if spec is None or spec.loader is None or spec.submodule_search_locations is None:
        return
    loader, package = spec.loader, importlib.util.module_from_spec(spec)

    def attribute(wanted: str) -> Any:
        if wanted in found_in:
            return getattr(importlib.import_module(found_in[wanted]), wanted)
        if wanted.startswith("__") and wanted != "__version__":
            raise AttributeError(wanted)
        _run(loader, package)
        return getattr(package, wanted)

    package.__dict__["__getattr__"] = attribute
    sys.modules[name] = package


def _run(loader: Any, package: ModuleType) -> None:
    package.__dict__.pop("__getattr__", None)
    loader.exec_module(package)
