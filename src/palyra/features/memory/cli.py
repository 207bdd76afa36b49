"""`palyra memory`: what is remembered about you and your work, yours to read, correct and
remove.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from palyra.cli import formatting, short_ids
from palyra.cli.commands import group, verb
from palyra.cli.confirm import confirm
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client import discovery
from palyra.client.types.memory import Imported, Item
from palyra.core.errors import InvalidInput, PalyraError
from palyra.features.memory import foreign

_STATES = ("active", "review", "superseded", "forgotten", "rejected", "all")
_KINDS = ("fact", "preference", "procedure", "decision", "constraint")
_SCOPES = ("principal", "channel", "session", "workspace")
_PER_REQUEST = 200
_PAGE = 500
_IMPORT_S = 120.0
_PURGE_S = 600.0

memory = group(
    "memory",
    "What is remembered: list, search, add, correct, forget, review, export, purge.",
    default="list",
)


@verb(memory, "list", help="List what is remembered, newest first.")
@click.option("--state", "wanted", type=click.Choice(_STATES), default="active", show_default=True)
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True)
def list_(state: CliState, wanted: Any, limit: int) -> None:
    page = state.api.list_memory(state=wanted, limit=limit)
    if state.out.as_json:
        state.out.json(page.items)
        return
    _table(state, page.items)
    waiting = state.api.memory_status().counts.get("review", 0)
    if waiting and wanted == "active":
        state.out.note(f"{waiting} need review: palyra memory review")


@verb(
    memory,
    "search",
    help="Search by words and by meaning. Scores go from 0 to 1 and mean the same in every search.",
)
@click.argument("text", nargs=-1, required=True)
@click.option(
    "--session",
    "session",
    default="",
    metavar="SESSION",
    help="Search as the agent in this session would.",
)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@click.option("--explain", is_flag=True, help="Show what each score is made of.")
def search(state: CliState, text: tuple[str, ...], session: str, limit: int, explain: bool) -> None:
    session_id = short_ids.session(state.api, session) if session else ""
    searched = state.api.search_memory(text=" ".join(text), limit=limit, session_id=session_id)
    if state.out.as_json:
        state.out.json(searched)
        return
    for each, likely in zip(searched.found, searched.relevance, strict=True):
        mark = "" if likely >= searched.threshold else "  (too far to be told to the agent)"
        state.out.line(
            f"{each.score:.2f}  {each.item.memory_id}  {one_line(each.item.text, 200)}{mark}"
        )
        if explain:
            parts = ", ".join(
                f"{name} {getattr(each.parts, name):.2f}" for name in each.parts.__struct_fields__
            )
            state.out.line(state.out.style(f"      {parts}", "dim"))
    if not searched.found:
        state.out.line("nothing is remembered about that")
    if searched.words_only:
        state.out.note(f"searched by words only: {clean(searched.words_only)}")


@verb(memory, "show", help="Show one item, and where it comes from.")
@click.argument("memory_id", metavar="ID")
def show(state: CliState, memory_id: str) -> None:
    item = state.api.get_memory(_id(state, memory_id))
    if state.out.as_json:
        state.out.json(item)
        return
    state.out.line(clean(item.text))
    told = {
        "id": item.memory_id,
        "kind": item.kind,
        "for": f"{item.scope} {item.scope_value}".strip(),
        "state": f"{item.state} {item.why}".strip(),
        "written by": item.origin,
        "trust": f"{item.label.integrity} {', '.join(item.label.sources)}".strip(),
        "confidence": f"{item.confidence_bps / 100:.0f} %",
        "pinned": "yes" if item.pinned else "",
        "said": formatting.when(item.valid_from_ms),
        "until": formatting.when(item.valid_until_ms),
        "forgotten at": formatting.when(item.expires_ms),
        "made": formatting.when(item.created_ms),
        "why": ", ".join(f"palyra journal show {position}" for position in item.provenance),
    }
    for name, value in told.items():
        if value:
            state.out.line(state.out.style(f"{name:>12}", "dim") + f"  {clean(value)}")


@verb(memory, "add", help="Remember something.")
@click.argument("text", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(_KINDS), default="fact", show_default=True)
@click.option(
    "--scope",
    type=click.Choice(_SCOPES),
    default="principal",
    show_default=True,
    help="Where it may be seen.",
)
@click.option(
    "--session", default="", metavar="SESSION", help="The session that gives the scope its meaning."
)
@click.option("--pin", is_flag=True, help="Tell it to the agent every time.")
@click.option(
    "--for",
    "ttl",
    default="",
    metavar="TIME",
    help="Keep it for so long: 2h, 1d, 1w.  [default: forever]",
)
def add(
    state: CliState, text: tuple[str, ...], kind: str, scope: str, session: str, pin: bool, ttl: str
) -> None:
    body: dict[str, Any] = {"text": " ".join(text), "kind": kind, "scope": scope, "pinned": pin}
    if session:
        body["session_id"] = short_ids.session(state.api, session)
    if ttl:
        body["ttl_ms"] = formatting.parse_duration(ttl)
    _say(state, state.api.add_memory(**body), "remembered")


@verb(memory, "edit", help="Correct an item. The old version stays as history.")
@click.argument("memory_id", metavar="ID")
@click.argument("text", nargs=-1)
@click.option("--kind", type=click.Choice(_KINDS))
def edit(state: CliState, memory_id: str, text: tuple[str, ...], kind: str | None) -> None:
    body: dict[str, Any] = {
        name: value for name, value in (("text", " ".join(text)), ("kind", kind)) if value
    }
    if not body:
        raise InvalidInput("say what it should be: palyra memory edit ID NEW TEXT")
    _say(state, state.api.change_memory(_id(state, memory_id), **body), "corrected")


@verb(
    memory, "forget", help="Forget an item. `review --accept` brings it back, until it is purged."
)
@click.argument("memory_id", metavar="ID")
def forget(state: CliState, memory_id: str) -> None:
    _say(state, state.api.forget_memory(_id(state, memory_id)), "forgotten")


@verb(memory, "pin", help="Tell an item to the agent every time.")
@click.argument("memory_id", metavar="ID")
@click.option("--off", is_flag=True, help="No longer.")
def pin(state: CliState, memory_id: str, off: bool) -> None:
    changed = state.api.change_memory(_id(state, memory_id), pinned=not off)
    _say(state, changed, "no longer pinned" if off else "pinned")


@verb(memory, "history", help="Show all versions of an item, newest first.")
@click.argument("memory_id", metavar="ID")
def history(state: CliState, memory_id: str) -> None:
    page = state.api.memory_history(_id(state, memory_id))
    if state.out.as_json:
        state.out.json(page.items)
    else:
        _table(state, page.items)


@verb(memory, "review", help="List what needs review, or settle one.")
@click.option("--accept", "accepted", default="", metavar="ID", help="It is true: use it.")
@click.option("--reject", "rejected", default="", metavar="ID", help="It is not.")
def review(state: CliState, accepted: str, rejected: str) -> None:
    if accepted and rejected:
        raise InvalidInput("accept one or reject one, not both at once")
    if accepted or rejected:
        item = state.api.review_memory(
            _id(state, accepted or rejected), decision="accept" if accepted else "reject"
        )
        _say(state, item, "accepted" if accepted else "rejected")
        return
    page = state.api.list_memory(state="review", limit=_PAGE)
    if state.out.as_json:
        state.out.json(page.items)
        return
    for each in page.items:
        state.out.line(f"{each.memory_id}  {one_line(each.text, 200)}")
        state.out.line(state.out.style(f"    {one_line(each.why, 200)}", "dim"))
    state.out.note(
        "palyra memory review --accept ID or --reject ID" if page.items else "nothing needs review"
    )


@verb(memory, "export", help="Print everything, history too, one JSON object a line.")
def export(state: CliState) -> None:
    for piece in state.api.export_memory():
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


@verb(
    memory,
    "import",
    help=(
        "Remember what a file holds: lines as `export` prints them, objects with at least a text,"
        " conversations exported from ChatGPT or Claude, or a list in Markdown (.md)."
    ),
)
@click.argument(
    "file", type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True)
)
def import_(state: CliState, file: Path) -> None:
    total = Imported(taken=0, merged=0, review=0)
    body: dict[str, list[Any]] = {"new": [], "items": []}
    for given in _given(file):
        body["items" if "memory_id" in given else "new"].append(given)
        if sum(map(len, body.values())) == _PER_REQUEST:
            total, body = _sent(state, body, total), {"new": [], "items": []}
    total = _sent(state, body, total)
    if state.out.as_json:
        state.out.json(total)
    else:
        state.out.line(
            f"{total.taken} taken, {total.merged} of them known already, {total.review} need review"
        )


def _given(file: Path) -> Iterator[dict[str, Any]]:
    if file.suffix.casefold() in (".md", ".markdown"):
        found = foreign.markdown(file.read_text(errors="replace"), file.name)
        yield from (msgspec.to_builtins(each) for each in found)
        return
    lines = sys.stdin.buffer if str(file) == "-" else file.open("rb")
    for number, line in enumerate(lines, 1):
        if number == 1 and foreign.is_conversations(line):
            found = foreign.conversations(line + lines.read())
            yield from (msgspec.to_builtins(each) for each in found)
            return
        if line.strip():
            yield _line(number, line)


def _line(number: int, line: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InvalidInput(
            f"line {number} is not a JSON object: {error}; lines before it may have been taken"
        ) from None


def _sent(state: CliState, body: dict[str, list[Any]], total: Imported) -> Imported:
    if not any(body.values()):
        return total
    done = state.api.within(_IMPORT_S).import_memory(new=body["new"], items=body["items"])
    return Imported(
        taken=total.taken + done.taken,
        merged=total.merged + done.merged,
        review=total.review + done.review,
    )


@verb(
    memory,
    "purge",
    help="Remove items permanently, with all their versions. This cannot be undone.",
)
@click.argument("memory_ids", metavar="ID...", nargs=-1)
@click.option("--everything", is_flag=True, help="All that is remembered about you.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def purge(state: CliState, memory_ids: tuple[str, ...], everything: bool, yes: bool) -> None:
    if bool(memory_ids) == everything:
        raise InvalidInput("name what is to go: one or more ids, or --everything")
    whole = [_id(state, each) for each in memory_ids]
    if not yes:
        what = (
            "everything that is remembered"
            if everything
            else f"{', '.join(whole)} with all versions"
        )
        confirm(f"remove {what} permanently?")
    done = state.api.within(_PURGE_S).purge_memory(memory_ids=whole, everything=everything)
    if state.out.as_json:
        state.out.json(done)
    else:
        state.out.line(f"{done.removed} removed permanently; backups made before still have them")


def _id(state: CliState, given: str) -> str:
    """An id as a person types it."""

    def listed() -> Iterator[str]:
        return (each.memory_id for each in state.api.list_memory(state="all", limit=_PAGE).items)

    return short_ids.memory(given, listed)


def _table(state: CliState, items: list[Item]) -> None:
    rows = [
        [each.memory_id, each.kind, _where(each), _how(each), one_line(each.text, 100)]
        for each in items
    ]
    state.out.table(["id", "kind", "for", "state", "text"], rows)


def _where(item: Item) -> str:
    return "you" if item.scope == "principal" else item.scope


def _how(item: Item) -> str:
    return f"{item.state}{', pinned' if item.pinned else ''}"


def _say(state: CliState, item: Item, done: str) -> None:
    if state.out.as_json:
        state.out.json(item)
    elif item.state == "review":
        state.out.line(f"{item.memory_id} needs review and is not used before: {clean(item.why)}")
    else:
        state.out.line(f"{done}: {item.memory_id}  {one_line(item.text, 200)}")


def words_only(state: CliState) -> str | None:
    """Say for doctor why meanings cannot be searched. None: the config does not want it."""
    from palyra.models import embedding_process

    if not state.settings.value("memory.embeddings"):
        return None
    try:
        for known in (embedding_process.MODEL, embedding_process.TOKENIZER):
            embedding_process.verified(*known)
        running = discovery.running(state.home) is not None
        return state.api.memory_status().words_only if running else ""
    except embedding_process.ModelMissing as missing:
        return str(missing)
    except PalyraError as error:
        return error.message
