"""`palyra sessions`: the conversations there are, and what can be done to one.

`palyra why-tokens`: what the prompts of a run were made of, part by part, with a bar for
each.
"""

import click

from palyra.cli import compactions, formatting, lookup, short_ids
from palyra.cli.commands import command, group, verb
from palyra.cli.confirm import confirm
from palyra.cli.formatting import bar
from palyra.cli.render import entries
from palyra.cli.render.reply import ToolCallLines
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.runs import BilledTurn
from palyra.client.types.sessions import Agent, Session
from palyra.core.events import (
    InputReceived,
    ModelFailed,
    ModelReplied,
    RunCancelled,
    RunCompleted,
    RunFailed,
    ToolFinished,
    ToolUndone,
)


@command(
    "why-tokens",
    help=(
        "What the prompts of a run were made of, turn by turn. `palyra usage --by run` lists runs."
    ),
)
@click.argument("run_id", metavar="RUN")
@click.option("--all", "every", is_flag=True, help="Every turn.  [default: the first and the last]")
def why_tokens(state: CliState, run_id: str, every: bool) -> None:
    turns = state.api.run_tokens(short_ids.run(state.api, run_id)).turns
    if state.out.as_json:
        state.out.json({"turns": turns})
        return
    if not turns:
        state.out.line("No model call in this run yet.")
        return
    shown = turns if every or len(turns) <= 2 else [turns[0], turns[-1]]
    for number, turn in enumerate(shown):
        if number:
            state.out.line("")
        _show(state, turn)
    if len(shown) < len(turns):
        state.out.line(
            "\nleft out between them:"
            f" {formatting.counted(len(turns) - len(shown), 'turn', 'turns')}; --all shows"
            " everything"
        )


def _show(state: CliState, turn: BilledTurn) -> None:
    reported = (
        f", {turn.model} counted {formatting.count(turn.input_tokens)}" if turn.input_tokens else ""
    )
    caching = [
        f"{formatting.count(number)} {what}"
        for number, what in (
            (turn.cached_tokens, "were cached"),
            (turn.cache_write_tokens, "were written to the cache"),
        )
        if number
    ]
    cached = f" of which {' and '.join(caching)}" if caching else ""
    state.out.line(
        f"turn {turn.turn}: {formatting.count(turn.tokens)} of {formatting.count(turn.budget)}"
        f" tokens{reported}{cached}"
    )
    most = max((part.tokens for part in turn.parts), default=0)
    rows = [
        [
            part.source,
            formatting.count(part.tokens),
            bar(part.tokens, most),
            one_line(part.note, 60),
        ]
        for part in turn.parts
    ]
    state.out.table(["part", "tokens", "", "note"], rows, right=["tokens"])


_LONG_S = 3_600.0

sessions = group("sessions", "The conversations: list, show, search, change.", default="list")


@verb(sessions, "list", help="List sessions, last used first.")
@click.option("--archived", is_flag=True, help="Those that were archived instead.")
@click.option("--limit", default=30, show_default=True, type=click.IntRange(1, 10_000))
def list_(state: CliState, archived: bool, limit: int) -> None:
    found = lookup.sessions(state.api, archived=archived, limit=limit)
    if state.out.as_json:
        state.out.json({"sessions": found})
        return
    if not found:
        state.out.line("No sessions yet. Start one with: palyra chat")
        return
    numbers = short_ids.session_numbers(state.api)
    rows = [
        [
            f"#{numbers[each.session_id]}" if each.session_id in numbers else "",
            one_line(each.title, 50),
            formatting.ago(each.updated_ms),
            each.active,
            one_line(each.workspace, 40),
            each.session_id,
        ]
        for each in found
    ]
    state.out.table(["#", "title", "used", "run", "folder", "session"], rows, right=["#"])


@verb(sessions, "show", help="Show what was said and done in a session.")
@click.argument("session_id", metavar="SESSION")
@click.option(
    "--limit",
    default=200,
    show_default=True,
    type=click.IntRange(1),
    help="How many entries, from the end.",
)
def show(state: CliState, session_id: str, limit: int) -> None:
    session = state.api.get_session(short_ids.session(state.api, session_id))
    stored = list(
        lookup.entries(
            state.api, session.session_id, max(0, lookup.head(state.api, session) - limit)
        )
    )
    below = state.api.list_agents(session.session_id).agents
    if state.out.as_json:
        state.out.json({"session": session, "entries": stored, "agents": below})
        return
    style = state.out.style
    _tell(state, session)
    calls = ToolCallLines(lambda approval_id: lookup.answered_ms(state.api, approval_id))
    for entry in stored:
        event = entries.read(entry)
        calls.follow(entry, event)
        match event:
            case InputReceived(text=text):
                state.out.line(style(entries.SAYS, "bold", "blue") + clean(text))
            case RunCompleted(text=text):
                state.out.line(clean(text))
            case (
                ModelReplied(stop="interrupted", text=text)
                | ModelFailed(will_retry=False, text=text)
            ) if text:
                state.out.line(f"{clean(text)} {style('(incomplete)', 'yellow')}")
            case ToolFinished():
                for line in calls.lines(style, event):
                    state.out.line(line)
            case RunFailed() | RunCancelled() | ToolUndone():
                state.out.line(style(f"{entry.kind}: {entries.summary(entry, 200)}", "yellow"))
            case _:
                pass
    _tell_agents(state, below)


@verb(sessions, "search", help="Find what was said in sessions, by words and by meaning.")
@click.argument("words_", metavar="WORDS", nargs=-1, required=True)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 100))
@click.option("--words", "words_only", is_flag=True, help="By words alone.")
def search(state: CliState, words_: tuple[str, ...], limit: int, words_only: bool) -> int:
    page = state.api.search_sessions(q=" ".join(words_), limit=limit, semantic=not words_only)
    if state.out.as_json:
        state.out.json({"found": page.found})
        return 0
    if not page.found:
        state.out.line("nothing was found")
    else:
        rows = [
            [
                each.session_id,
                str(each.seq),
                f"{each.score:.2f}",
                one_line(each.title, 32),
                one_line(each.snippet, 80),
            ]
            for each in page.found
        ]
        state.out.table(
            ["session", "entry", "score", "title", "said"], rows, right=["entry", "score"]
        )
    if page.words_only:
        state.out.note(f"searched by words only: {page.words_only}")
    if page.not_searched:
        state.out.note(f"{page.not_searched} messages are not indexed yet: try again in a while")
    return 0


@verb(sessions, "archive", help="Hide a session from the list. It stays verifiable and searchable.")
@click.argument("session_id", metavar="SESSION")
def archive(state: CliState, session_id: str) -> None:
    _tell(state, state.api.change_session(short_ids.session(state.api, session_id), archived=True))


@verb(sessions, "unarchive", help="Bring a session back.")
@click.argument("session_id", metavar="SESSION")
def unarchive(state: CliState, session_id: str) -> None:
    _tell(state, state.api.change_session(short_ids.session(state.api, session_id), archived=False))


@verb(sessions, "keep", help="Never seal a session, however old it gets.")
@click.argument("session_id", metavar="SESSION")
@click.option("--remove", is_flag=True, help="Treat it like the others again.")
def keep(state: CliState, session_id: str, remove: bool) -> None:
    _tell(
        state, state.api.change_session(short_ids.session(state.api, session_id), kept=not remove)
    )


@verb(sessions, "archive-old", help="Seal sessions that were not used for long into segments.")
@click.option(
    "--days",
    type=click.IntRange(1, 36_500),
    help="Not used for so many.  [default: retention.sessions_after_days]",
)
@click.option("--dry-run", is_flag=True, help="Only show which that would be.")
def archive_old(state: CliState, days: int | None, dry_run: bool) -> None:
    report = state.api.within(_LONG_S).archive_old_sessions(days=days, dry_run=dry_run)
    if state.out.as_json:
        state.out.json(report)
        return
    if not report.days:
        state.out.line(
            "sessions are kept forever: set retention.sessions_after_days, or say --days N"
        )
        return
    if report.sessions:
        rows = [
            [
                each.session_id,
                one_line(each.title, 50),
                formatting.ago(each.updated_ms),
                str(each.entries),
            ]
            for each in report.sessions
        ]
        state.out.table(["session", "title", "used", "entries"], rows, right=["entries"])
    what = (
        f"{len(report.sessions)} sessions with {report.entries} entries,"
        f" {formatting.size(report.bytes)}"
    )
    if dry_run:
        state.out.line(f"{what} would be sealed")
    else:
        state.out.line(
            f"{what} sealed into {len(report.segments)} segments of"
            f" {formatting.size(report.sealed_bytes)}"
        )


@verb(sessions, "delete", help="Delete a session; a sealed copy stays, which proves the journal.")
@click.argument("session_id", metavar="SESSION")
@click.option("--yes", is_flag=True, help="Do not ask first.")
def delete(state: CliState, session_id: str, yes: bool) -> None:
    found = state.api.get_session(short_ids.session(state.api, session_id))
    if not yes:
        confirm(f"Delete “{one_line(found.title, 50) or found.session_id}”?")
    gone = state.api.within(_LONG_S).delete_session(found.session_id)
    if state.out.as_json:
        state.out.json(gone)
        return
    state.out.line(
        f"deleted; {gone.entries} entries stay provable in segment {gone.segment_id[:16]}."
        f" Bring it back with: palyra sessions restore {gone.session_id}"
    )


@verb(sessions, "restore", help="Restore a sealed session.")
@click.argument("session_id", metavar="SESSION")
def restore(state: CliState, session_id: str) -> None:
    _tell(state, state.api.within(_LONG_S).restore_session(lookup.checked(session_id)))


@verb(sessions, "title", help="Name a session.")
@click.argument("session_id", metavar="SESSION")
@click.argument("title")
def title(state: CliState, session_id: str, title: str) -> None:
    _tell(state, state.api.change_session(short_ids.session(state.api, session_id), title=title))


@verb(sessions, "branch", help="A new session that continues from an entry of another one.")
@click.argument("session_id", metavar="SESSION")
@click.option(
    "--at",
    type=click.IntRange(1),
    metavar="SEQ",
    help="The last entry that both share.  [default: the newest]",
)
@click.option("--title", default="", help="Its title.")
def branch(state: CliState, session_id: str, at: int | None, title: str) -> None:
    _tell(
        state,
        state.api.branch_session(short_ids.session(state.api, session_id), at=at, title=title),
    )


@verb(
    sessions,
    "reset",
    help="Start the conversation over. What runs is cancelled; the history stays.",
)
@click.argument("session_id", metavar="SESSION")
def reset(state: CliState, session_id: str) -> None:
    _tell(state, state.api.reset_session(short_ids.session(state.api, session_id)))


@verb(
    sessions,
    "compact",
    help="Condense the older turns of a session. The history stays whole; uncompact undoes it.",
)
@click.argument("session_id", metavar="SESSION")
@click.option(
    "--preview", is_flag=True, help="Show the summary that it would get, and change nothing."
)
def compact(state: CliState, session_id: str, preview: bool) -> None:
    made = state.api.compact_session(short_ids.session(state.api, session_id), preview=preview)
    if state.out.as_json:
        state.out.json(made)
        return
    for line in compactions.told(made, summary=preview):
        state.out.line(line)


@verb(sessions, "compactions", help="List the compactions of a session.")
@click.argument("session_id", metavar="SESSION")
def list_compactions(state: CliState, session_id: str) -> None:
    found = state.api.list_compactions(short_ids.session(state.api, session_id)).compactions
    if state.out.as_json:
        state.out.json({"compactions": found})
        return
    if not found:
        state.out.line("this session was never condensed")
        return
    rows = [
        [
            str(each.seq),
            formatting.ago(each.time_ms),
            str(each.turns),
            f"{each.tokens_before} → {each.tokens_after}",
            each.written_by,
            "stands" if each.stands else "undone",
        ]
        for each in found
    ]
    state.out.table(
        ["entry", "when", "turns", "tokens", "written by", ""], rows, right=["entry", "turns"]
    )


@verb(
    sessions,
    "uncompact",
    help="Undo the newest compaction, or the one of an entry with those built on it.",
)
@click.argument("session_id", metavar="SESSION")
@click.argument("seq", required=False, type=click.IntRange(1))
def uncompact(state: CliState, session_id: str, seq: int | None) -> None:
    undone = compactions.undo(state.api, short_ids.session(state.api, session_id), seq)
    if state.out.as_json:
        state.out.json(undone)
        return
    state.out.line(
        f"undone: {', '.join(map(str, undone.compactions))}; the conversation goes on in full"
    )


@verb(sessions, "pin", help="Keep the exchange that an entry belongs to out of every compaction.")
@click.argument("session_id", metavar="SESSION")
@click.argument("seq", type=click.IntRange(1))
@click.option("--remove", is_flag=True, help="Do not keep it any longer.")
def pin(state: CliState, session_id: str, seq: int, remove: bool) -> None:
    pinned = state.api.pin_entry(short_ids.session(state.api, session_id), seq=seq, removed=remove)
    if state.out.as_json:
        state.out.json(pinned)
        return
    kept = ", ".join(map(str, pinned.pins))
    state.out.line(
        f"kept whole: the exchanges that begin at {kept}" if kept else "no exchange is pinned"
    )


def _tell_agents(state: CliState, agents: list[Agent]) -> None:
    """Print the subagents of a session, as a tree; each has a session of its own to look into."""
    if agents:
        state.out.line(state.out.style("subagents:", "dim"))
    for each in agents:
        how = f"{each.state} ({each.reason})" if each.reason else each.state
        state.out.line(f"{'  ' * each.depth}{each.session_id}  {how}  {one_line(each.task, 80)}")


def _tell(state: CliState, session: Session) -> None:
    if state.out.as_json:
        state.out.json(session)
        return
    state.out.line(
        f"{state.out.style(session.session_id, 'bold')}  {one_line(session.title)}".rstrip()
    )
    facts = [
        f"in {one_line(session.workspace)}" if session.workspace else "",
        f"used {formatting.ago(session.updated_ms)}",
        "sealed" if session.segment_id else "archived" if session.archived else "",
        "kept" if session.kept else "",
        f"branched from {session.parent_id} at {session.parent_seq}" if session.parent_id else "",
        f"a subagent of run {session.parent_run_id}" if session.parent_run_id else "",
    ]
    state.out.line(state.out.style("  " + " · ".join(filter(None, facts)), "dim"))
