"""`palyra incidents` and `palyra notices`: what went wrong with the daemon, and what it told you
without being asked.
"""

from collections.abc import Iterator

import click

from palyra.cli import formatting, short_ids
from palyra.cli.commands import group, verb
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState

incidents = group(
    "incidents", "What went wrong with the daemon, and what was tried: list, show.", default="list"
)
notices = group("notices", "What you were told without asking: list, read.", default="list")
_COLORS = {"info": "dim", "warning": "yellow", "error": "red", "critical": "red"}


@verb(incidents, "list", help="List incidents, newest first.")
@click.option("--open", "only_open", is_flag=True, help="Only those that are not over.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
def list_incidents(state: CliState, only_open: bool, limit: int) -> None:
    found = state.api.list_incidents(limit=limit, open=only_open or None).incidents
    if state.out.as_json:
        state.out.json({"incidents": found})
        return
    if not found:
        state.out.line("No open incidents." if only_open else "No incidents.")
        return
    rows = [
        [
            each.incident_id,
            formatting.when(each.opened_ms),
            each.domain,
            each.severity,
            "closed" if each.closed_ms else "open",
            one_line(each.summary, 100),
        ]
        for each in found
    ]
    state.out.table(["incident", "opened", "domain", "severity", "state", "what"], rows)


def _known(state: CliState) -> Iterator[str]:
    return (each.incident_id for each in state.api.list_incidents(limit=500).incidents)


@verb(incidents, "show", help="Show one incident: what was tried, and how it ended.")
@click.argument("incident_id", metavar="ID")
def show(state: CliState, incident_id: str) -> None:
    known = short_ids.incident(incident_id, lambda: _known(state))
    found = state.api.get_incident(known)
    if state.out.as_json:
        state.out.json(found)
        return
    out = state.out
    out.line(
        f"{out.style(found.severity, _COLORS[found.severity])} {found.domain}:"
        f" {clean(found.summary)}"
    )
    out.line(f"  opened  {formatting.when(found.opened_ms)}")
    for each in found.tried:
        out.line(
            f"  tried   {formatting.when(each.time_ms)}  {clean(each.remedy)}: {each.result}"
            f" {one_line(each.detail, 200)}".rstrip()
        )
    if found.closed_ms:
        out.line(f"  closed  {formatting.when(found.closed_ms)}  {clean(found.outcome)}")
    elif found.fix:
        out.line(out.style(f"  to do   {clean(found.fix)}", "dim"))


@verb(notices, "list", help="List notices, newest first.")
@click.option("--unread", is_flag=True, help="Only those that are unread.")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
def list_notices(state: CliState, unread: bool, limit: int) -> None:
    found = state.api.list_notices(limit=limit, unread=unread or None)
    if state.out.as_json:
        state.out.json(found)
        return
    if not found.notices:
        state.out.line("No new notices." if unread else "No notices yet.")
        return
    rows = [
        [
            each.notice_id,
            formatting.when(each.created_ms),
            each.about,
            "" if each.read_ms else "unread",
            one_line(each.text, 120),
        ]
        for each in found.notices
    ]
    state.out.table(["notice", "told", "about", "", "what"], rows)


def _told(state: CliState) -> Iterator[str]:
    return (each.notice_id for each in state.api.list_notices(limit=500).notices)


@verb(notices, "read", help="Mark a notice as read, or all of them.")
@click.argument("notice_id", metavar="[ID]", default="")
def read(state: CliState, notice_id: str) -> None:
    done = state.api.read_notices(
        notice_id=short_ids.notice(notice_id, lambda: _told(state)) if notice_id else ""
    )
    if state.out.as_json:
        state.out.json(done)
        return
    state.out.line(f"{formatting.counted(done.marked, 'notice', 'notices')} marked as read")
