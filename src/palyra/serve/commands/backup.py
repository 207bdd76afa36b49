"""`palyra backup` and `palyra restore`: backups of the whole home, with and without a daemon."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from palyra.cli import daemon_process, exit_codes, formatting
from palyra.cli.commands import command, group, verb
from palyra.cli.confirm import confirm
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.core.errors import PalyraError
from palyra.serve import config

if TYPE_CHECKING:
    from palyra.client.types.backups import CheckedBackup as CheckedThere
    from palyra.features.backups.model import CheckedBackup, MadeBackup
    from palyra.features.backups.service import HomeBackups

# A large journal and a slow line take their time.
_LONG_S = 6 * 3_600.0

backup = group("backup", "Backups of the home: now, list, check.")


def home_backups(state: CliState, passphrase: str = "") -> "HomeBackups":
    """The backups of this home, as its settings say."""
    from msgspec.structs import replace

    from palyra.features.backups.service import HomeBackups
    from palyra.serve.config import backups

    given = config.load(state.home, state.env).config
    settings = backups.settings(given)
    if passphrase:
        settings = replace(settings, passphrase=passphrase)
    policies = Path(given.policy.folder) if given.policy.folder else None
    return HomeBackups(
        state.home, settings, lambda reference: config.secret(reference, state.env), policies
    )


def _runs(state: CliState) -> bool:
    return discovery.running(state.home) is not None or bool(state.env.get("PALYRA_URL"))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@verb(backup, "now", help="Make a backup of the home at the target that is set. Needs no daemon.")
def now(state: CliState) -> None:
    made = state.api.within(_LONG_S).make_backup() if _runs(state) else _make(state)
    if state.out.as_json:
        state.out.json(made)
        return
    how = "encrypted" if made.encrypted else "not encrypted"
    state.out.line(
        f"{formatting.count(made.entries)} entries backed up and verified, {how}:"
        f" {clean(made.name)} ({formatting.size(made.bytes)}) in {clean(made.target)}"
    )
    state.out.line(f"Keys: {clean(made.keys)}.")
    if made.removed:
        state.out.line(f"Removed {len(made.removed)} older ones.")


def _make(state: CliState) -> "MadeBackup":
    """A backup without a daemon."""
    backups = home_backups(state)
    with daemon_process.exclusive(state.home):
        try:
            return backups.make(_now_ms())
        except (PalyraError, OSError) as error:
            backups.failed(error, _now_ms())
            raise


@verb(backup, "list", help="List the backups at the target, the newest first.")
def list_(state: CliState) -> None:
    found = state.api.list_home_backups().backups if _runs(state) else home_backups(state).listing()
    if state.out.as_json:
        state.out.json({"backups": found})
        return
    if not found:
        state.out.line("No backups yet. Make one with: palyra backup now")
    for each in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.made_ms / 1000))
        state.out.line(f"{clean(each.name)}  {when}  {formatting.size(each.bytes)}")


@verb(
    backup, "check", help="Restore a backup into a scratch home and verify it. Default: the newest."
)
@click.argument("name", default="")
def check(state: CliState, name: str) -> int:
    checked = (
        state.api.within(_LONG_S).check_backup(name=name)
        if _runs(state)
        else home_backups(state).check(name, _now_ms())
    )
    return _checked(state, checked)


@command(
    "restore",
    help=(
        "Put a backup in the place of the home, after verifying it. The daemon must not run; the"
        " present home is kept."
    ),
)
@click.argument("name", metavar="NAME|FILE")
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Only restore it into a scratch home and verify it.",
)
@click.option(
    "--passphrase",
    default="",
    metavar="REFERENCE",
    help="Where its passphrase is: env:NAME or file:/path.  [default: as the settings say]",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def restore(state: CliState, name: str, only_check: bool, passphrase: str, yes: bool) -> int:
    from palyra.features.backups.switch import finish_switch

    backups = home_backups(state, passphrase)
    if only_check:
        return _checked(state, backups.check(name, _now_ms()))
    if (state.home / "journal.db").exists() and not yes:
        confirm(f"Replace the home {state.home} by this backup? The present one is kept.")
    with daemon_process.exclusive(state.home):
        finish_switch(state.home)
        done = backups.restore(name, _now_ms())
    if state.out.as_json:
        state.out.json(done)
        return exit_codes.OK
    kept = f" The home before it is in {done.kept}." if done.kept else ""
    state.out.line(
        f"{formatting.count(done.entries)} entries restored from {clean(done.name)}.{kept}"
    )
    if not done.keys:
        state.out.line(f"The backup has no keys: those in {state.home / 'keys'} stay in use.")
    return exit_codes.OK


def _checked(state: CliState, checked: "CheckedBackup | CheckedThere") -> int:
    if state.out.as_json:
        state.out.json(checked)
    elif checked.ok:
        keys = "with keys" if checked.keys else "without keys"
        state.out.line(
            state.out.style("✓ ", "green")
            + f"{clean(checked.name)} can be restored: {formatting.count(checked.entries)} entries"
            f" and {checked.files} files, {keys}, verified"
        )
    else:
        state.out.line(
            state.out.style("✗ ", "red") + f"{clean(checked.name)}: {clean(checked.problem)}"
        )
    return exit_codes.OK if checked.ok else exit_codes.FAILED
