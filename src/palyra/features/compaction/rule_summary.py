"""The summary that needs no model: what was required, decided, left open, learned and done, found
by rules and kept in bounds.

It is pure and incremental: points of before and new turns in, points out. The rule: what the user
requires goes first and is given up last; of two versions of the same thing the newer one stands;
every exchange is represented once, in words or counted.
"""

from collections.abc import Iterable, Sequence

from palyra.core import references
from palyra.core.events import InputReceived, Point, PointKind
from palyra.core.run_progress import CallProgress, ModelTurn, UserTurn
from palyra.core.sentences import (
    CONSTRAINT,
    DECISION,
    OPEN,
    collapse,
    cut,
    is_telling,
    names_something,
    normal,
    sentences,
    told_before_asking,
    topic,
)
from palyra.features.compaction import result_values
from palyra.features.compaction.model import Spoken

_LONGEST = 240
_COURSE = 90
# Of one message: a pasted document full of "must" is not so many wishes of the user.
_MOST_OF_A_KIND = 12
_MOST_FACTS = 6
_MOST_FROM_REPLY = 3
_TITLES: dict[PointKind, str] = {
    "constraint": "The user requires:",
    "decision": "Decided:",
    "question": "Still open:",
    "fact": "Known:",
    "done": "Done, with the newest outcome:",
    "course": "Talked about, oldest first:",
}
# How much of the room that is left each may take, the most important first.
_SHARES: tuple[tuple[PointKind, float], ...] = (
    ("constraint", 1.0),
    ("decision", 1.0),
    ("question", 0.4),
    ("fact", 0.6),
    ("done", 0.6),
    ("course", 1.0),
)
_LOOK_UP = "session.search finds every word of them, and all that tools returned."
# Between how a call ended and what it gave.
_GAVE = " → "


def condense(
    before: Sequence[Point], turns: Sequence[Spoken], most_bytes: int
) -> tuple[Point, ...]:
    """The points of a summary that stands for an older one and for these turns."""
    return _fit(merged(before, _points(turns)), most_bytes)


def render(points: Sequence[Point], records: int, from_seq: int, upto_seq: int) -> str:
    # Positions on the tape of a session that this one was branched from would say nothing here.
    where = f", entries {from_seq} to {upto_seq} of the session," if from_seq > 0 else ""
    lines = [f"{records} turns{where} are condensed here. {_LOOK_UP}"]
    for kind, title in _TITLES.items():
        found = [point for point in points if point.kind == kind]
        if found:
            lines += [title, *(f"- {_line(point)}" for point in found)]
    return "\n".join(lines)


def _line(point: Point) -> str:
    if point.kind == "course" and not point.text:
        return (
            f"{point.times} more {'exchange' if point.times == 1 else 'exchanges'}, which the tape"
            " has in full"
        )
    return f"{point.text} ({point.times} times)" if point.times > 1 else point.text


def constraints(points: Iterable[Point]) -> list[str]:
    return [point.text for point in points if point.kind == "constraint"]


def keeps(text: str, required: Iterable[str]) -> bool:
    """Return whether a summary that somebody else wrote says all of what is required."""
    said = normal(text)
    return all(normal(each) in said for each in required)


def _points(turns: Sequence[Spoken]) -> list[Point]:
    points: list[Point] = []
    at = 0
    wanted = result_values.taken_up(turns)
    while at < len(turns):
        end = at + 1
        while end < len(turns) and turns[end].run_id == turns[at].run_id:
            end += 1
        points += _of_run(turns[at:end], wanted)
        at = end
    return points


def _of_run(turns: Sequence[Spoken], wanted: frozenset[str]) -> list[Point]:
    """One exchange: what it says that must stay, and one line, or a mere count, for the rest of
    it.
    """
    points: list[Point] = []
    asked: list[str] = []
    answered: list[str] = []
    for turn in turns:
        match turn:
            case UserTurn():
                for event in turn.inputs:
                    found, rest = _of_input(turn.seq, event)
                    points += found
                    asked += rest
            case ModelTurn():
                points += [_done(turn.seq, call, wanted) for call in turn.calls]
                if not turn.calls:
                    found, answered = _of_reply(turn, points)
                    points += found
    line = " → ".join(
        filter(None, (cut(" ".join(asked), _COURSE), cut(" ".join(answered), _COURSE)))
    )
    return [*points, Point("course", line, turns[0].seq)]


def _of_input(seq: int, event: InputReceived) -> tuple[list[Point], list[str]]:
    """Return what a person said, sorted; and the sentences of it that are no point of their own."""
    if event.label.integrity != "trusted":
        # Nobody's wish: what it asked for must not come back as something the user said.
        return [], [f"[untrusted text from {', '.join(event.label.sources) or 'outside'}]"]
    found: dict[PointKind, list[Point]] = {
        "constraint": [],
        "decision": [],
        "question": [],
        "fact": [],
    }
    rest: list[str] = []
    # What was quoted between fences is no wish of the one who quoted it.
    for sentence in sentences(references.unfenced(event.text)):
        kind, at = _kind(sentence)
        if kind is None or (kind == "fact" and len(found["fact"]) >= _MOST_FACTS):
            rest.append(sentence)
        else:
            found[kind].append(Point(kind, cut(sentence, _LONGEST, at), seq))
    points = [point for several in found.values() for point in _ends(several)]
    points += [
        Point("fact", f"the user attached {cut(each.name, 80)}", seq)
        for each in event.attachments
        if each.name
    ]
    return points, rest


def _kind(sentence: str) -> tuple[PointKind | None, int]:
    """Return the kind of a user's sentence, and where in it that shows."""
    if OPEN.search(sentence):
        return "question", 0
    told = told_before_asking(sentence)
    if told:
        for kind, pattern in (("decision", DECISION), ("constraint", CONSTRAINT)):
            shows = pattern.search(told)
            if shows:
                return kind, shows.start()  # type: ignore[return-value]
        if is_telling(told):
            return "fact", 0
    return None, 0


def _ends(points: list[Point]) -> list[Point]:
    """Wishes stand at the beginning or the end of a long text."""
    half = _MOST_OF_A_KIND // 2
    return points if len(points) <= _MOST_OF_A_KIND else points[:half] + points[-half:]


def _of_reply(turn: ModelTurn, known: Sequence[Point]) -> tuple[list[Point], list[str]]:
    """Return what the model decided, left open or found. What it only repeats is left out."""
    said = [normal(point.text) for point in known]
    points: list[Point] = []
    rest: list[str] = []
    for sentence in sentences(turn.reply.text):
        kind: PointKind | None = None
        if OPEN.search(sentence):
            kind = "question"
        elif DECISION.search(sentence):
            kind = "decision"
        elif names_something(sentence):
            kind = "fact"
        text = cut(sentence, _LONGEST)
        if any(each in normal(text) or normal(text) in each for each in said):
            continue
        if kind is None or len(points) >= _MOST_FROM_REPLY:
            rest.append(sentence)
        else:
            points.append(Point(kind, text, turn.seq))
    return points, rest


def _done(seq: int, call: CallProgress, wanted: frozenset[str]) -> Point:
    """A call with its arguments, how it ended, and what of its result later calls may need."""
    about = result_values.arguments(call.arguments)
    if not about and call.finished is not None:
        about = ", ".join(change.path for change in call.finished.changes)
    outcome = (
        "undone by the user"
        if call.undone
        else call.finished.outcome
        if call.finished
        else "no result"
    )
    said = f"{call.call.tool} {cut(collapse(about), _LONGEST)}".rstrip() + f": {outcome}"
    if call.finished is None or call.undone:
        return Point("done", said, seq)
    values = result_values.of_result(call.finished.text, wanted)
    # Positions on another session's tape would say nothing here.
    where = f" (entry {call.finished_seq})" if call.finished_seq > 0 else ""
    return Point("done", f"{said}{_GAVE}{values}{where}" if values else said + where, seq)


def merged(before: Iterable[Point], new: Iterable[Point]) -> list[Point]:
    """Merge points, oldest first; the newer version of a thing takes the older one's place in time,
    and what is said twice is there once.
    """
    found: dict[tuple[str, str], Point] = {}
    for point in (*before, *new):
        key = _key(point)
        old = found.pop(key, None)
        times = point.times + (old.times if old is not None and point.kind == "done" else 0)
        found[key] = Point(point.kind, point.text, point.seq, times)
    return list(found.values())


def _key(point: Point) -> tuple[str, str]:
    match point.kind:
        case "done":
            return "done", point.text.partition(_GAVE)[0].rpartition(": ")[0]
        case "course":
            return "course", f"{point.seq} {point.text}"
        case _:
            return point.kind, topic(point.text, free=point.kind == "fact")


def _fit(points: Sequence[Point], most_bytes: int) -> tuple[Point, ...]:
    """Return the points for which there is room, the newest of each kind. Exchanges that have no
    line of their own any more are counted.
    """
    left = most_bytes
    chosen: set[int] = set()
    for kind, share in _SHARES:
        room = int(left * share) - len(_TITLES[kind])
        for at in range(len(points) - 1, -1, -1):
            point = points[at]
            if point.kind != kind or not point.text:
                continue
            cost = len(_line(point).encode()) + 3
            if cost <= room:
                chosen.add(at)
                room -= cost
                left -= cost
            elif kind not in ("constraint", "decision"):
                break
    kept = [point for at, point in enumerate(points) if at in chosen]
    counted = [
        point for at, point in enumerate(points) if at not in chosen and point.kind == "course"
    ]
    if not counted:
        return tuple(kept)
    return (
        Point(
            "course", "", min(point.seq for point in counted), sum(point.times for point in counted)
        ),
        *kept,
    )
