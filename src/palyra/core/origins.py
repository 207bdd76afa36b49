"""Origins of the values in a call's arguments: said by the user, read from a trusted source, or
found only in untrusted content.

The rule: only what people and sources said counts, never what the model says. So text that the
model wrote is no source, and more untrusted content can only take trust away: a value is vouched
for by the user or by a trusted source, or not at all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from palyra.core import identifiers, plans
from palyra.core.argument_roles import SINKS, SOFT, STRICT, Role, ToolUse
from palyra.core.call_values import (
    LONGEST_VALUE,
    MOST_CALLS,
    NO_VALUES,
    VOUCHED,
    WORST,
    ArgumentOrigin,
    CallValues,
    Origin,
    sinks_key,
)
from palyra.core.plans import PlannedCall
from palyra.core.shown_index import ShownIndex, ShownSpan, Trust

_MOST_VALUES = 32
_MOST_SOURCES = 8
_MOST_LEVELS = 8


class _Found(Struct):
    origin: Origin
    sources: tuple[str, ...] = ()


class ShownContent:
    """Content that the model of one session was shown, and what it has done with it since the
    user's last message. Kept by the fold of the tape.
    """

    def __init__(self) -> None:
        self.waiting: list[ShownSpan] = []
        self.index = ShownIndex()
        # What the user's last message asks for, and the calls made since, by tool and sinks.
        self.turn = ""
        self.made: dict[str, tuple[str, str]] = {}
        # What was planned for it before anything untrusted was read.
        self.tickets: tuple[PlannedCall, ...] = ()
        # Files written after untrusted content was read, with its sources.
        self.tainted: dict[str, tuple[str, ...]] = {}

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]

    def user(self, seq: int, text: str, *, new: bool = True, more: bool = False) -> None:
        """`more`: it adds to what is being done."""
        self._add(ShownSpan(seq, "user", (), text))
        if new and more:
            self.turn = f"{self.turn}\n{text}"
        elif new:
            self.turn, self.made, self.tickets = text, {}, ()

    def source(self, seq: int, trust: Trust, sources: Sequence[str], text: str, but: str) -> None:
        if text:
            named = tuple(f"{each} #{seq}" for each in sources[:_MOST_SOURCES])
            self._add(ShownSpan(seq, trust, named, text, but))

    def _add(self, span: ShownSpan) -> None:
        self.waiting.append(span)

    def forget_before(self, seq: int) -> None:
        """Let go of what slid out of the window."""
        self.index.first = max(self.index.first, seq)

    def take(self) -> list[ShownSpan]:
        """Take the spans that are not in the index yet; the caller adds them."""
        taken, self.waiting = self.waiting, []
        return taken


def plain_values(value: Any, level: int = 0) -> Iterator[str]:
    """Every text and number inside an argument."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        yield str(value)
    elif level < _MOST_LEVELS:
        each: Iterable[Any] = ()
        if isinstance(value, Mapping):
            each = value.values()
        elif isinstance(value, list | tuple):
            each = value
        for one in each:
            yield from plain_values(one, level + 1)


def call_values(
    shown: ShownContent,
    tool: str,
    source: str,
    use: ToolUse | None,
    arguments: Mapping[str, Any],
    workspace: str = "",
    ahead: Sequence[tuple[str, str]] = (),
) -> CallValues:
    """Return the origin of every value in a call. `ahead`: calls of the same turn that were decided
    before this one, by tool and sinks.
    """
    if use is None:
        return NO_VALUES
    index = shown.index
    found: list[ArgumentOrigin] = []
    for name, value in arguments.items():
        role = use.role(name)
        if role == "other":
            continue
        texts = [text for text in plain_values(value) if text.strip()][: _MOST_VALUES + 1]
        if role == "content":
            found.append(_content(index, name, texts))
        else:
            found.append(_sink(index, name, role, texts, workspace))
    from palyra.core import intent

    made = [*shown.made.values(), *ahead]
    key = sinks_key(CallValues(arguments=tuple(found)))
    sinks = [each for each in found if each.role in SINKS]
    # What is said of a call is said of no other: beside the thing that it is about.
    strange = [each for each in sinks if each.origin not in VOUCHED and each.role != "when"]
    known = len(strange) <= 1 and all(each.role in SOFT for each in strange)
    said = [value for each in sinks if known for value in each.values]
    named = [each.name for each in use.arguments if each.role != "other"]
    meant = intent.fitting(shown.turn, tool, said, named)
    asked = intent.count(meant, addressed=bool(key))
    # An order is done once, by whichever tool.
    used = sum(intent.uses_up(meant, tool, one[0]) for one in made)
    high = use.high_impact or any(each.role in STRICT and each.origin != "none" for each in found)
    planned = max(asked - used, plans.left(shown.tickets, tool, found, made))
    fresh = planned > 0 or not high
    return CallValues(
        arguments=tuple(found),
        declared=True,
        reads_only=_reads_only(use, found),
        same_source=all(_from_itself(each, source) for each in found),
        planned=planned,
        vouched=fresh
        and _vouched(found, source, planned=planned > 0, exact=asked < MOST_CALLS, high=high),
    )


def _reads_only(use: ToolUse, found: Sequence[ArgumentOrigin]) -> bool:
    """A call that is made to an address that somebody else chose tells them something, even if it
    only reads.
    """
    return use.reads_only and all(
        each.origin in VOUCHED for each in found if each.role in ("url", "host", "command")
    )


def _from_itself(each: ArgumentOrigin, source: str) -> bool:
    """Return whether nothing in it is known to be from elsewhere."""
    if each.origin in VOUCHED:
        return True
    if each.role in STRICT:
        return False
    return all(_is_of(one, source) for one in each.sources)


def _is_of(named: str, source: str) -> bool:
    return named == source or named.startswith(f"{source} #")


def _vouched(
    found: Sequence[ArgumentOrigin], source: str, *, planned: bool, exact: bool, high: bool
) -> bool:
    """`exact`: so many calls were asked for, and not any number."""
    strict = any(each.role in STRICT and each.origin != "none" for each in found)
    for each in found:
        if each.origin in VOUCHED:
            continue
        if each.role == "content":
            # What others would act upon, passed on to them.
            if strict and each.origin == "untrusted":
                return False
        elif each.role in STRICT or not planned:
            return False
        elif each.role == "when" and exact and strict:
            continue  # Whom it is for is known; when is a detail.
        elif not _from_itself(each, source) and (high or not exact):
            # One thing of little weight may be made of what was read elsewhere.
            return False
        elif high and not strict and (each.role == "target" or each.origin == "untrusted"):
            # Which thing is sent, paid or shared matters less where it goes to somebody whom the
            # user named; what is deleted goes nowhere.
            return False
    sinks = [each for each in found if each.role in SINKS and each.origin != "none"]
    # A tool that says nothing of its arguments is judged by the label alone.
    return planned and bool(found) and (not high or any(each.origin in VOUCHED for each in sinks))


def _sink(
    index: ShownIndex, name: str, role: Role, texts: Sequence[str], workspace: str
) -> ArgumentOrigin:
    if len(texts) > _MOST_VALUES:
        return ArgumentOrigin(name, role, "unknown", _short(texts))
    worst = _Found("none")
    for text in texts:
        one = origin_of(index, role, text, workspace)
        if WORST.index(one.origin) > WORST.index(worst.origin):
            worst = one
        elif one.origin == worst.origin:
            worst.sources = (*worst.sources, *one.sources)
    return ArgumentOrigin(name, role, worst.origin, _short(texts), _unique(worst.sources))


def _short(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(text[:LONGEST_VALUE] for text in texts[:_MOST_VALUES])


def _unique(sources: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sources))[:_MOST_SOURCES]


def _content(index: ShownIndex, name: str, texts: Sequence[str]) -> ArgumentOrigin:
    """A text has no origin of its own; it has those of what somebody could act upon in it."""
    untrusted: list[str] = []
    known: Origin = "none"
    acted: list[str] = []
    for text in texts:
        whole = identifiers.plain(text)
        for each in (whole, *identifiers.decoded(whole[:4096])):
            for form in identifiers.names(each):
                kind = form.partition(":")[0]
                if kind not in identifiers.ACTIONABLE or (kind == "account" and len(form) < 16):
                    continue
                places = index.form("untrusted", form)
                if index.form("user", form) or index.form("trusted", form):
                    known = max(known, "user", key=WORST.index)
                elif places:
                    acted.append(form.partition(":")[2])
                    untrusted += [source for place in places for source in place.sources]
    if untrusted or acted:
        return ArgumentOrigin(name, "content", "untrusted", _short(acted), _unique(untrusted))
    return ArgumentOrigin(name, "content", known)


def origin_of(index: ShownIndex, role: Role, text: str, workspace: str = "") -> _Found:
    """The best that anybody says of a value: the user, a trusted source, untrusted content."""
    text = identifiers.plain(text).strip()
    if not text:
        return _Found("none")
    for trust in ("user", "trusted"):
        if index.has(trust) and _says(index, trust, role, text, workspace):
            return _Found(trust)
    if not index.has("untrusted"):
        return _Found("unknown")
    sources = _named(index, role, text)
    return _Found("untrusted", sources) if sources is not None else _Found("unknown")


def forms_of(role: Role, text: str) -> list[str]:
    """The normal forms of a whole value; any of them names it."""
    found: list[str] = []
    if role == "recipient" and "@" in text:
        bare = text.rpartition("<")[2].rstrip(">").removeprefix("mailto:")
        return [identifiers.email(bare)]
    if role in ("recipient", "account"):
        compact = identifiers.account(text)
        if sum(char.isdigit() for char in compact) >= 4:
            found.append(compact)
    elif role == "url":
        found.append(f"url:{identifiers.url(text)}")
    elif role == "host":
        found.append(f"host:{identifiers.host(text)}")
    elif role == "path":
        found.append(f"path:{identifiers.path(text)}")
    elif role == "amount":
        found += [f"amount:{each}" for each in identifiers.amounts(text)]
    elif role == "target":
        found.append(f"id:{text.lstrip('#').casefold()}")
        found.append(f"account:{text.upper()}")
    return found


def _says(index: ShownIndex, trust: Trust, role: Role, text: str, workspace: str) -> bool:
    if role == "when":
        return _says_when(index, trust, text)
    if role == "command":
        return trust == "user" and index.quotes(text)
    if role == "path":
        path = identifiers.path(text)
        # The workspace itself has no name that a text could show.
        return bool(path) and _says_path(index, trust, path, workspace)
    forms = forms_of(role, text)
    if any(index.form(trust, form) for form in forms):
        return True
    if role == "recipient" and "@" in text:
        return False
    if role == "url":
        return _says_place(index, trust, identifiers.url(text))
    if role in ("amount", "host"):
        return False
    words = identifiers.words(text)
    return bool(words) and bool(index.phrase(trust, words))


def _says_place(index: ShownIndex, trust: Trust, url: str) -> bool:
    """A page below one that was named, or on a host that was named by itself. What is asked of it
    must have been named, too.
    """
    if "?" in url:
        return False
    above = url
    while "/" in above:
        above = above.rpartition("/")[0]
        if index.form(trust, f"url:{above}"):
            return True
    return False


def _says_path(index: ShownIndex, trust: Trust, path: str, workspace: str) -> bool:
    """A path below a folder that was named, or a file that was named without its folder."""
    if index.form(trust, f"path:{path}"):
        return True
    if ".." in path.split("/"):
        return False
    root = identifiers.path(workspace)
    inside = path.removeprefix(f"{root}/") if root else path
    if " " in inside:
        return bool(index.phrase(trust, identifiers.words(inside.rpartition("/")[2])))
    if index.form(trust, f"path:{inside}"):
        return True
    folder = inside
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        if index.form(trust, f"path:{folder}"):
            return True
    return False


def _says_when(index: ShownIndex, trust: Trust, text: str) -> bool:
    days, times = identifiers.dates(text), identifiers.times(text)
    dated = {each for each in days if each.startswith("date:")} or days
    if not dated and not times:
        words = identifiers.words(text)
        return bool(words) and bool(index.phrase(trust, words))
    day_said = not days or any(index.form(trust, each) for each in dated | days)
    time_said = not times or all(each == "time:00:00" or index.form(trust, each) for each in times)
    return day_said and time_said


def _named(index: ShownIndex, role: Role, text: str) -> tuple[str, ...] | None:
    """The untrusted sources of a value, of a part of it, or of what it was made from; None if
    there are none.
    """
    found: list[str] = []
    seen = False
    for each in (text, *identifiers.decoded(text[:4096])):
        if role == "when":
            forms = identifiers.dates(each) | identifiers.times(each)
        else:
            forms = {*forms_of(role, each), *identifiers.names(each)}
        for form in forms:
            places = index.form("untrusted", form)
            seen = seen or bool(places)
            found += [source for place in places for source in place.sources]
        if role not in ("when", "amount"):
            places = index.phrase("untrusted", identifiers.words(each))
            seen = seen or bool(places)
            found += [source for place in places for source in place.sources]
    return _unique(found) if seen else None


def said(use: ToolUse | None, arguments: Mapping[str, Any]) -> CallValues:
    """The values of arguments that a person has written."""
    if use is None:
        return NO_VALUES
    found = tuple(
        ArgumentOrigin(name, use.role(name), "user", _short(list(plain_values(value))))
        for name, value in arguments.items()
        if use.role(name) != "other"
    )
    return CallValues(
        arguments=found, declared=True, reads_only=use.reads_only, same_source=True, vouched=True
    )
