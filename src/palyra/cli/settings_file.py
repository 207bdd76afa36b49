"""The settings file as commands of features use it."""

from collections.abc import Mapping
from typing import Any, Protocol


class SettingsFile(Protocol):
    """Reader and writer of the one settings file. `CliState.settings` gives it."""

    def tables(self, section: str) -> Mapping[str, Any]:
        """The tables of a section by name, such as those of `channels`."""

    def value(self, key: str) -> Any:
        """The effective value of a key, such as `memory.embeddings`."""

    def set_values(self, changes: Mapping[str, Any]) -> None:
        """Set several keys together, all or none."""

    def remove_table(self, path: tuple[str, ...]) -> None: ...
