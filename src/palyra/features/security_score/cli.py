"""`palyra security score`: how safe and how quiet the last month was, and what would help."""

import os
import time

import click

from palyra.cli import formatting
from palyra.cli.commands import group, verb
from palyra.cli.formatting import bar
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client.types.security import SecurityScore

security = group("security", "How safe and how quiet your last month was.", default="score")


@verb(
    security,
    "score",
    help="Questions a task, what ran without one, and which grants would save you questions.",
)
@click.option(
    "--since",
    default="30d",
    show_default=True,
    metavar="TIME",
    help="How far back: 12h, 30d, 8w, or all.",
)
def score(state: CliState, since: str) -> None:
    now_ms = int(time.time() * 1000)
    since_ms = 1 if since == "all" else now_ms - formatting.parse_duration(since)
    found = state.api.security_score(since_ms=since_ms)
    if state.out.as_json:
        state.out.json(found)
        return
    if found.score is None:
        state.out.note("No tool was called in this time. Try: palyra ask 'what is in this folder?'")
        return
    _head(state, found)
    _tools(state, found)
    _repeated(state, found)
    _sources(state, found)


@verb(security, "files", help="Files that were written after untrusted content was read.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 500))
def files(state: CliState, limit: int) -> None:
    found = state.api.list_labelled_files(limit=limit).files
    if state.out.as_json:
        state.out.json({"files": found})
        return
    if not found:
        state.out.line("no file has a label")
        return
    rows = [
        [
            one_line(each.path),
            one_line(", ".join(each.label.sources) or each.label.confidentiality, 60),
            formatting.ago(each.labelled_ms),
        ]
        for each in found
    ]
    state.out.table(["file", "read before", "written"], rows)
    state.out.note("trust a file that you have read: palyra security clear PATH")


@verb(security, "clear", help="Trust a file again, or all files of a folder.")
@click.argument("path", type=click.Path())
def clear(state: CliState, path: str) -> None:
    found = state.api.clear_file_label(path=os.path.realpath(path)).files
    if state.out.as_json:
        state.out.json({"files": found})
        return
    for each in found:
        state.out.line(f"{one_line(each.path)} is trusted again")


def _head(state: CliState, found: SecurityScore) -> None:
    out, given = state.out, found.score or 0
    color = "green" if given >= 80 else "yellow" if given >= 50 else "red"
    out.line(out.style(f"Security score {given} of 100", "bold", color))
    out.line(
        f"  {bar(given, 100)}  -{found.lost_to_exposure} for exposed calls,"
        f" -{found.lost_to_questions} for questions"
    )
    each = found.questions / found.tasks
    out.line(
        f"{found.tasks:,} tasks, {found.calls:,} tool calls, {found.questions:,} questions"
        f" ({each:.2f} a task; {found.quiet_tasks / found.tasks:.0%} of tasks without any)"
    )
    out.line(
        f"Answers: {found.approved:,} approved ({found.edited:,} edited), {found.denied:,} denied,"
        f" {found.expired:,} expired. Policy refused {found.refused:,} calls."
    )


def _tools(state: CliState, found: SecurityScore) -> None:
    if not found.tools:
        return
    out = state.out
    out.line()
    out.line(out.style(f"Ran without a question: {found.unattended:,} calls", "bold"))
    for each in found.tools:
        parts = [f"{each.calls:,} calls"]
        parts += [f"{each.by_grant:,} by a grant"] if each.by_grant else []
        parts += (
            [f"{each.after_untrusted:,} after untrusted content"] if each.after_untrusted else []
        )
        out.line(f"  {clean(each.tool)}: {', '.join(parts)}")
        if each.exposed:
            told = f"    {each.exposed:,} exposed, the last: {one_line(each.example, 120)}"
            out.line(out.style(f"{told} (palyra why {clean(each.call_id)})", "red"))


def _repeated(state: CliState, found: SecurityScore) -> None:
    out = state.out
    if found.repeated:
        out.line()
        out.line(out.style("Always answered the same way", "bold"))
    for each in found.repeated:
        word = "approved" if each.decision == "allow" else "denied"
        out.line(
            f"  {clean(each.tool)} {one_line(each.about, 80)}: {word} {each.times:,} times".rstrip()
        )
    if found.permits:
        out.line()
        out.line(out.style(f"Grants that would have saved {found.saved:,} questions", "bold"))
        for permit in found.permits:
            out.line(f"  {permit.covers:,}  {clean(permit.what)}")
        out.note("`palyra policy suggest` prints them as policies")


def _sources(state: CliState, found: SecurityScore) -> None:
    if not found.sources:
        return
    out = state.out
    out.line()
    out.line(out.style("Content that looked like an instruction to the agent", "bold"))
    for each in found.sources:
        times = f"{each.times:,} times" if each.times > 1 else "once"
        out.line(f"  {one_line(each.source, 80)}: {times}, “{one_line(each.words, 80)}”")
        out.line(
            out.style(f"    {each.session_id}:{each.seq} {formatting.ago(each.time_ms)}", "dim")
        )
