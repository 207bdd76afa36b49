"""A second set of policies that is asked beside the one in force. It is recorded where it differs
and enforced nowhere.
"""

from pathlib import Path

from palyra.policy.policy_set import PRESETS
from palyra.policy.store import PolicyStore


class ShadowPolicy(PolicyStore):
    """The policies on trial."""


def open_shadow(named: str, folder: Path | None, preset: str) -> ShadowPolicy | None:
    """The set that `named` means: a preset with the folder in force, or another folder with the
    preset in force.

    ConfigInvalid if it does not load: a trial that silently tries nothing would be misread.
    """
    if not named:
        return None
    return (
        ShadowPolicy(folder, named)
        if named in PRESETS
        else ShadowPolicy(Path(named).expanduser(), preset)
    )


def name(shadow: PolicyStore) -> str:
    """Which set it is, for people."""
    return f"preset {shadow.preset}" + (f" with {shadow.folder}" if shadow.folder else "")
