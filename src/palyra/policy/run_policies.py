"""Policies that are in force for single runs."""

from collections.abc import Callable
from pathlib import Path

from palyra.core.errors import InvalidInput
from palyra.core.ports import Policy
from palyra.policy.store import PolicyStore


class OtherPolicies:
    """Policies that are in force for single runs, by folder; with the preset of the daemon."""

    def __init__(self, preset: Callable[[], str]) -> None:
        self._preset = preset
        self._loaded: dict[str, PolicyStore] = {}

    def load(self, named: str) -> str:
        """Read a folder as it is now; its full path. InvalidInput or ConfigInvalid if it does not
        load.
        """
        path = Path(named).expanduser().resolve()
        if not path.is_dir():
            raise InvalidInput(f"{named} is not a folder of policies", policy=named)
        self._loaded[str(path)] = PolicyStore(path, self._preset())
        return str(path)

    def of(self, folder: str) -> Policy:
        return self._loaded[folder if folder in self._loaded else self.load(folder)]
