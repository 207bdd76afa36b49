"""The settings file for commands of features."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palyra.serve import config


class HomeSettings:
    """The settings file of one home folder."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self._home, self._env = home, env

    def tables(self, section: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = getattr(config.load(self._home, self._env).config, section)
        return found

    def value(self, key: str) -> Any:
        found: Any = config.load(self._home, self._env).config
        for part in key.split("."):
            found = getattr(found, part)
        return found

    def set_values(self, changes: Mapping[str, Any]) -> None:
        config.set_values(self._home, changes)

    def remove_table(self, path: tuple[str, ...]) -> None:
        config.remove_table(self._home, path)
