"""Index of what was said in sessions: passages of inputs, answers and what tools returned, by their
words at once and by their meaning later.

The rule: a principal's passages are a partition of their own, so nobody else's words move a rank,
and each keeps the label of what it was made from, so quoting it elsewhere does not make it any more
trusted.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from palyra.core import events, labels
from palyra.core.events import (
    InputAssembled,
    InputReceived,
    RunCompleted,
    ToolFinished,
    ToolProposed,
)
from palyra.core.labels import Label
from palyra.features.memory import words as memory_words
from palyra.features.memory.model import Said
from palyra.features.memory.rows import index as index_rows
from palyra.features.memory.rows import search as search_rows
from palyra.features.memory.rows import tool_results
from palyra.features.memory.rows.codes import Codes
from palyra.features.memory.rows.index import IndexEntry
from palyra.features.memory.rows.items import Unembedded
from palyra.store.database import Tx
from palyra.store.dialect import Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A passage is about what the embedding model reads; what is longer than so many of them is found by
# its beginning.
_PASSAGE = 1_000
_MOST_PASSAGES = 64
_SNIPPET = 200
_LEAD = 40
_WORD = re.compile(r"\w+")
_SNIPPET_OF_RESULT = 600
_SAID = "kind IN ('input.received', 'run.completed')"
_RETURNED = "kind = 'tool.finished'"
# The results of tools have places of their own, so that they stand between nobody's words; the
# indexes of the table have the same number.
_RESULTS_FROM = 1_099_511_627_776
_TALK = f"place < {_RESULTS_FROM}"
_RESULTS = f"place >= {_RESULTS_FROM}"
# Of a result so many passages get a vector; the rest is found by its words.
_MEANT = 4
_BREAK = re.compile(r"\n\s*\n|\n|(?<=[.!?])\s|\s")
# A near meaning without a word in common is told of from here on.
_NEAR_ENOUGH = 0.2


def behind(tx: Tx) -> int:
    """Return how many entries wait to be indexed."""
    return _count_behind(tx, _SAID, _TALK) + _count_behind(tx, _RETURNED, _RESULTS)


def _count_behind(tx: Tx, kinds: str, which: str) -> int:
    row = tx.one(
        f"SELECT count(*) FROM entries WHERE {kinds} AND position > :indexed",
        indexed=_indexed(tx, which),
    )
    return int(row[0]) if row else 0


def _indexed(tx: Tx, which: str) -> int:
    row = tx.one(f"SELECT coalesce(max(position), 0) FROM turns WHERE {which}")
    return int(row[0]) if row else 0


def index(tx: Tx, limit: int) -> int:
    """Make the oldest that waits findable by its words. Says how many entries it took."""
    rows = _waiting(tx, _SAID, _TALK, limit)
    rows += _waiting(tx, _RETURNED, _RESULTS, limit - len(rows))
    fresh: dict[int, list[IndexEntry]] = {}
    calls = tool_results.Calls(tx)
    for position, tape, time_ms, run_id, body, owner in rows:
        event = events.decode(body)
        added = _Added(position, owner, tape, time_ms)
        match event:
            case InputReceived():
                partition, entries = _add(tx, added, event.text, event.label)
            case RunCompleted():
                partition, entries = _add(tx, added, event.text, _answer_label(tx, run_id))
            case ToolFinished():
                partition, entries = _add_result(tx, added, event, calls.of(run_id, event.call_id))
            case _:
                raise AssertionError(f"{event} was not said")
        fresh.setdefault(partition, []).extend(entries)
    for partition, entries in fresh.items():
        # All together: many of them share their words.
        index_rows.add_words(tx, partition, entries)
    return len(rows)


def _waiting(tx: Tx, kinds: str, which: str, limit: int) -> list[Row]:
    if limit <= 0:
        return []
    return tx.all(
        f"""SELECT e.position, e.tape, e.time_ms, e.run_id, e.body, s.owner FROM entries e
            JOIN sessions s ON s.session_id = e.tape WHERE {kinds} AND e.position > :indexed ORDER
            BY e.position LIMIT :limit""",
        indexed=_indexed(tx, which),
        limit=limit,
    )


class _Added(NamedTuple):
    """An entry that is made findable."""

    position: int
    owner: str
    tape: str
    time_ms: int


def _add_result(
    tx: Tx, added: _Added, event: ToolFinished, call: ToolProposed | None
) -> tuple[int, list[IndexEntry]]:
    if tool_results.is_echo(call):
        return _add(tx, added, "", event.label, result=True)
    text = tool_results.text_of(tx, added.tape, event)
    return _add(tx, added, text, event.label, result=True, head=tool_results.head(call))


def _answer_label(tx: Tx, run_id: str) -> Label:
    """An answer is made from all that the model was shown for it."""
    row = tx.one(
        """SELECT body FROM entries WHERE run_id = :run_id AND run_id <> '' AND kind =
        'input.assembled'
        ORDER BY seq DESC LIMIT 1""",
        run_id=run_id,
    )
    if row is None:
        return labels.untrusted("unknown")
    assembled = events.decode(row[0])
    assert isinstance(assembled, InputAssembled)
    joined = tx.all(
        """SELECT body FROM entries WHERE run_id = :run_id AND run_id <> '' AND kind = 'input.received' AND seq <= :upto""",  # noqa: E501
        run_id=run_id,
        upto=assembled.upto_seq,
    )
    inputs = [
        event.label for (body,) in joined if isinstance(event := events.decode(body), InputReceived)
    ]
    return labels.join([*(part.label for part in assembled.parts), *inputs])


def _add(
    tx: Tx, added: _Added, text: str, label: Label, *, result: bool = False, head: str = ""
) -> tuple[int, list[IndexEntry]]:
    """Note an entry's passages; what of them is still to go into which partition's words. `head`
    are words that the first is found by as well.
    """
    cut = passages(text)
    partition, slot = index_rows.slots_for(tx, added.owner, "turns", "", len(cut))
    last = tx.one(
        "SELECT coalesce(max(place), :none) FROM turns WHERE session_id = :tape AND"
        f" {_RESULTS if result else _TALK}",
        tape=added.tape,
        none=_RESULTS_FROM if result else 0,
    )
    place = int(last[0]) + 1 if last else 1
    entries = []
    for number, (first, end) in enumerate(cut):
        passage = f"{head} {text[first:end]}" if head and not number else text[first:end]
        entries.append(IndexEntry(slot + number, memory_words.counted(passage, added.time_ms)))
        tx.run(
            """INSERT INTO turns (position, owner, session_id, place, first, behind, time_ms, label,
            spot, embedded_by) VALUES
            (:position, :owner, :tape, :place, :first, :behind, :time_ms, :label, :spot, :by)""",
            position=added.position,
            owner=added.owner,
            tape=added.tape,
            place=place + number,
            first=first,
            behind=end,
            time_ms=added.time_ms,
            label=msgspec.json.encode(label).decode(),
            spot=index_rows.spot(partition, slot + number),
            by=search_rows.WORDS_ONLY if result and (number >= _MEANT or not text) else "",
        )
    return partition, entries


def passages(text: str) -> list[tuple[int, int]]:
    """Return where each passage begins and ends; cut at the best break that a passage has in its
    second half.
    """
    found: list[tuple[int, int]] = []
    first = 0
    while len(found) < _MOST_PASSAGES and (first < len(text) or not found):
        end = min(first + _PASSAGE, len(text))
        if end < len(text):
            half = first + _PASSAGE // 2
            breaks = [each.end() for each in _BREAK.finditer(text, half, end)]
            end = breaks[-1] if breaks else end
        found.append((first, end))
        first = end
    return found


def unembedded(tx: Tx, limit: int) -> list[Unembedded]:
    """Passages that are found by their words only, newest first: what was just said is what is
    asked for.
    """
    rows = tx.all(
        """SELECT t.spot, t.session_id, t.place, t.first, t.behind, coalesce(e.body, a.body) FROM
        turns t
            LEFT JOIN entries e ON e.position = t.position LEFT JOIN archived_said a ON a.position =
            t.position
        WHERE t.embedded_by = '' AND coalesce(e.body, a.body) IS NOT NULL
        ORDER BY t.number DESC LIMIT :limit""",
        limit=limit,
    )
    return [
        Unembedded(
            spot,
            memory_words.views(
                _text(tx, session_id, body)[first:end], _before(tx, session_id, place)
            ),
        )
        for spot, session_id, place, first, end, body in rows
    ]


def _before(tx: Tx, session_id: str, place: int) -> str:
    """The passage before one in its session."""
    row = tx.one(
        """SELECT t.first, t.behind, e.body FROM turns t JOIN spoken e ON e.position = t.position
        WHERE t.session_id = :session_id AND t.place = :place - 1""",
        session_id=session_id,
        place=place,
    )
    return _text(tx, session_id, row[2])[row[0] : row[1]] if row else ""


def embedded(tx: Tx, *, by: str, packed: dict[int, tuple[bytes, bytes]]) -> None:
    index_rows.add_vectors(tx, packed)
    tx.run(
        f"UPDATE turns SET embedded_by = :by WHERE spot IN ({','.join(map(str, packed))})", by=by
    )


def search(
    tx: Tx,
    owner: str,
    question: str,
    limit: int,
    *,
    vector: "NDArray[np.float32] | None",
    codes: Codes,
    but_run: str = "",
) -> list[Said]:
    """The entries of an owner's sessions that say most about a question, each once, best first.
    `but_run` is who asks.
    """
    partitions = index_rows.turns_of(tx, owner)
    if not partitions:
        return []
    ranked = search_rows.rank(
        tx, partitions, question, limit * 4 + 8, vector=vector, codes=codes, table=search_rows.TURNS
    )
    told = [each for each in ranked if each.parts.words or each.parts.own >= _NEAR_ENOUGH]
    rows = tx.all(
        f"""SELECT t.spot, t.session_id, s.title, e.seq, t.time_ms, e.kind, e.body, t.first,
        t.behind, t.label, e.run_id
        FROM turns t JOIN spoken e ON e.position = t.position JOIN sessions s ON s.session_id =
        t.session_id
        WHERE t.spot IN ({",".join(str(each.spot) for each in told)})"""
    )
    by_spot = {row[0]: row[1:] for row in rows}
    found: dict[tuple[str, int], Said] = {}
    calls = tool_results.Calls(tx)
    terms = set(memory_words.terms(question))
    for each in told:
        if each.spot not in by_spot:  # Said in a session that was deleted.
            continue
        session_id, title, seq, time_ms, kind, body, first, end, label, run_id = by_spot[each.spot]
        result = kind == "tool.finished"
        # What its tools returned may have left its prompt; what it was asked has not.
        if (session_id, seq) in found or (but_run and run_id == but_run and not result):
            continue
        passage = _text(tx, session_id, body)[first:end]
        if result:
            event = events.decode(body)
            assert isinstance(event, ToolFinished)
            call = calls.of(run_id, event.call_id)
            speaker = f"tool {call.tool}" if call is not None else "tool"
            quoted = snippet(passage, terms, _SNIPPET_OF_RESULT)
        else:
            speaker = "user" if kind == "input.received" else "agent"
            quoted = snippet(passage, terms)
        kept = msgspec.json.decode(label, type=Label)
        found[session_id, seq] = Said(
            session_id, title, seq, time_ms, speaker, quoted, each.score, each.parts, kept, run_id
        )
        if len(found) == limit:
            break
    return list(found.values())


def snippet(passage: str, terms: set[str], most: int = _SNIPPET) -> str:
    """The stretch of a passage that has most of the words, on one line."""
    line = " ".join(passage.split())
    if len(line) <= most:
        return line
    hits: list[tuple[int, str]] = []
    for word in _WORD.finditer(line):
        met = terms.intersection(memory_words.terms(word[0]))
        hits += [(word.start(), each) for each in met]
    best, start = 0, 0
    for at, _ in hits:
        count = len({each for place, each in hits if at <= place < at + most - _LEAD})
        if count > best:
            best, start = count, at
    first = max(0, start - _LEAD)
    if first:
        # From the next gap between words on, if there is one near.
        gap = line.find(" ", first, start)
        first = gap + 1 if gap >= 0 else first
    rest = line[first:]
    return ("…" if first else "") + rest[:most].rstrip() + ("…" if len(rest) > most else "")


def _text(tx: Tx, session_id: str, body: bytes) -> str:
    event = events.decode(body)
    if isinstance(event, ToolFinished):
        return tool_results.text_of(tx, session_id, event)
    assert isinstance(event, InputReceived | RunCompleted)
    return event.text
