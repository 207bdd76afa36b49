"""Putting another state of a home in the place of the present one, at one moment.

Everything is laid out beside the home's files first. The moment is the rename of that folder to
`switch.ready`: before it nothing has changed, after it whoever opens the home next finishes the
work, however often it is killed. The journal goes last: until it is in place, a version that does
not know of switches refuses the journal that is there, because that is newer.
"""

import os
import shutil
from pathlib import Path

import msgspec
from msgspec import Struct

from palyra.core.errors import Conflict
from palyra.features.backups.home_copy import FILES, FOLDERS, JOURNAL, sync_tree
from palyra.store import log_keys
from palyra.store.log_keys import LogKeys
from palyra.store.sqlite import finish_restore, ready_to_restore, sync_folder
from palyra.system.os_keyring import in_keyring
from palyra.system.private_files import make_private

READY = "switch.ready"
_STAGING, _OVER = "switch.partial", "switch.over.partial"
_PLAN, _NEW = "plan.json", "new"
# The signing keys of the journal go on: what was signed for is never signed for again.
_LOG_KEYS = "journal."
_PUBLIC_LOG_KEYS = ("journal.pub", "journal.rotations", "journal.witnesses")
_ALL_LOG_KEYS = (*_PUBLIC_LOG_KEYS, "journal.key", "journal.checkpoint")


class SwitchPlan(Struct, frozen=True):
    """`items` are paths in the home that get another state, or none at all; what is there goes to
    `kept`. `entries` is how many the new journal has. `adopted`: the signing keys come from
    another home, which may have signed for more.
    """

    kept: str
    items: tuple[str, ...]
    entries: int
    adopted: bool = False


def stage(home: Path, source: Path, kept: Path, *, entries: int, secrets: bool = True) -> None:
    """Lay out the state that `source`, a copy of a home, has, and decide for it. Call
    `finish_switch` next. Without `secrets` the present keys and certificates stay.
    """
    if (home / READY).exists():
        raise Conflict(f"another switch of {home} is not finished: start the daemon, or try again")
    staging = home / _STAGING
    shutil.rmtree(staging, ignore_errors=True)
    make_private(staging / _NEW)
    items: list[str] = []
    names = [*FILES, *(name for name in FOLDERS if name not in ("keys", "tls"))]
    adopted = not (home / "keys" / "journal.key").exists() and (source / "keys").is_dir()
    if secrets:
        names += ["tls", *_other_keys(home, source)]
    else:
        names.remove("owner.token")
    if adopted:
        # A key in the keyring of another machine is not in the backup: a new one is made.
        whole = secrets and not in_keyring(source / "keys" / "journal.key")
        names += [f"keys/{name}" for name in (_ALL_LOG_KEYS if whole else _PUBLIC_LOG_KEYS)]
    for name in names:
        place = staging / _NEW / name
        make_private(place.parent)
        if (source / name).is_dir():
            shutil.copytree(source / name, place)
        elif (source / name).is_file():
            shutil.copy2(source / name, place)
        elif not (home / name).exists():
            continue
        items.append(name)
    if (source / JOURNAL).exists():
        shutil.copyfile(source / JOURNAL, staging / _NEW / JOURNAL)
        os.chmod(staging / _NEW / JOURNAL, 0o600)
    plan = SwitchPlan(str(kept.relative_to(home)), tuple(items), entries, adopted)
    (staging / _PLAN).write_bytes(msgspec.json.encode(plan))
    sync_tree(staging)
    make_private(kept)
    sync_folder(home)
    os.rename(staging, home / READY)
    sync_folder(home)


def finish_switch(home: Path) -> bool:
    """Finish what was decided; say if there was something. Only who holds the home may call it."""
    for name in (_STAGING, _OVER):
        shutil.rmtree(home / name, ignore_errors=True)
    ready = home / READY
    if not ready.exists():
        return False
    plan = msgspec.json.decode((ready / _PLAN).read_bytes(), type=SwitchPlan)
    for item in plan.items:
        _replace(home / item, ready / _NEW / item, home / plan.kept / "replaced" / item, ready)
    journal = ready / _NEW / JOURNAL
    if journal.exists():
        # The owner goes back behind what was signed for: from here on it is a log of its own.
        if plan.adopted:
            LogKeys(home / "keys").begin_again()
        else:
            log_keys.begin_again(home / JOURNAL, plan.entries)
        os.rename(journal, ready_to_restore(home / JOURNAL))
        sync_folder(home)
    finish_restore(home / JOURNAL)
    os.rename(ready, home / _OVER)
    sync_folder(home)
    shutil.rmtree(home / _OVER, ignore_errors=True)
    return True


def _replace(present: Path, staged: Path, kept: Path, ready: Path) -> None:
    """Set the present one aside and put the staged one in its place. A mark says that it was set
    aside: what is there afterwards is the new one, or made by somebody who came between.
    """
    mark = ready / "aside" / staged.relative_to(ready / _NEW)
    if not mark.exists():
        if present.exists() and not kept.exists():
            make_private(kept.parent)
            os.rename(present, kept)
            sync_folder(kept.parent)
        make_private(mark.parent)
        mark.touch()
        sync_folder(mark.parent)
    if staged.exists():
        if present.is_dir():
            shutil.rmtree(present)
        make_private(present.parent)
        os.rename(staged, present)
    sync_folder(present.parent)


def _other_keys(home: Path, source: Path) -> list[str]:
    """The key files of both states but those of the log."""
    found = {
        f"keys/{each.name}"
        for folder in (home / "keys", source / "keys")
        if folder.is_dir()
        for each in folder.iterdir()
        if each.is_file() and not each.name.startswith(_LOG_KEYS)
    }
    return sorted(found)
