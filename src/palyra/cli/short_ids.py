"""Ids as a person types them: in any case, and as few of their first characters as name one thing.
Never a guess between two.
"""

import re
from collections.abc import Callable, Iterable

from palyra.cli import lookup
from palyra.client import Client
from palyra.client.types.approvals import Approval
from palyra.core import ids
from palyra.core.errors import InvalidInput, NotFound

_SHORTEST = 6
_PART = re.compile(r"[0-9A-HJKMNP-TV-Z]{6,25}")
_MOST_APPROVALS = 500
_MOST_SESSIONS = 10_000
_WHOLE_ID = 26
_NUMBER = re.compile(r"#?\d{1,5}")
_MOST_RUNS = 500
_MOST_NAMED = 5


def session(api: Client, given: str) -> str:
    """The id of a session, by its id, its number or its name."""
    name = given.strip()
    if _NUMBER.fullmatch(name):
        number = int(name.removeprefix("#"))
        found = next(
            (each for each, other in session_numbers(api).items() if other == number), None
        )
        if found is None:
            raise NotFound(f"there is no session #{number}: `palyra sessions` lists them")
        return found
    places = (lambda: _sessions(api, archived=False), lambda: _sessions(api, archived=True))
    try:
        return _whole(name, "session", "palyra sessions", places)
    except (InvalidInput, NotFound):
        if len(name) == _WHOLE_ID and " " not in name:
            raise
        if (named := _named_session(api, name)) is None:
            raise
        return named


def session_numbers(api: Client) -> dict[str, int]:
    """The numbers of all sessions, counted from the first that was ever begun: a number stays what
    it is.
    """
    everything = [*_sessions(api, archived=False), *_sessions(api, archived=True)]
    return {each: number for number, each in enumerate(sorted(set(everything)), 1)}


def _named_session(api: Client, name: str) -> str | None:
    """The one session with this title, or whose title begins with it, or has it inside."""
    wanted = name.casefold()
    titles = {
        each.session_id: each.title.casefold()
        for archived in (False, True)
        for each in lookup.sessions(api, archived=archived, limit=_MOST_SESSIONS)
    }
    tests: tuple[Callable[[str], bool], ...] = (
        lambda title: title == wanted,
        lambda title: title.startswith(wanted),
        lambda title: wanted in title,
    )
    for fits in tests:
        found = [each for each, title in titles.items() if fits(title)]
        if len(found) > 1:
            numbers = session_numbers(api)
            some = ", ".join(f"#{numbers[each]}" for each in found[:_MOST_NAMED])
            raise InvalidInput(
                f"{len(found)} sessions are called like {name!r}: {some}"
                f"{', …' if len(found) > _MOST_NAMED else ''}; give a number"
            )
        if found:
            return found[0]
    return None


def _sessions(api: Client, *, archived: bool) -> Iterable[str]:
    return (
        each.session_id for each in lookup.sessions(api, archived=archived, limit=_MOST_SESSIONS)
    )


def approval(api: Client, given: str) -> Approval:
    """An approval. Without an id, the one that is pending, if there is exactly one."""
    if given:
        places = (lambda: _approvals(api, "true"), lambda: _approvals(api, "any"))
        return api.get_approval(_whole(given, "approval", "palyra approvals list --all", places))
    pending = lookup.pending(api)
    if not pending:
        raise NotFound("nothing needs approval")
    if len(pending) > 1:
        raise InvalidInput(
            f"{len(pending)} approvals are pending: say which; `palyra approvals` lists them"
        )
    return pending[0]


def _approvals(api: Client, pending: str) -> Iterable[str]:
    found = api.list_approvals(
        pending="any" if pending == "any" else "true", limit=_MOST_APPROVALS
    ).approvals
    return (each.approval_id for each in found)


def grant(api: Client, given: str) -> str:
    """The id of a grant, which is that of the approval it was given in."""
    return _whole(
        given,
        "grant",
        "palyra approvals grants",
        (lambda: (each.approval_id for each in api.list_grants().grants),),
    )


def run(api: Client, given: str) -> str:
    """The id of a run. One in which no model was asked has no usage, and is known by its whole id
    only.
    """
    used = (lambda: (each.group for each in api.usage(by="run", limit=_MOST_RUNS).usage),)
    return _whole(given, "run", "palyra usage --by run", used)


def memory(given: str, listed: Callable[[], Iterable[str]]) -> str:
    """The id of something that is remembered."""
    return _whole(given, "memory", "palyra memory list --state all", (listed,))


def candidate(given: str, listed: Callable[[], Iterable[str]]) -> str:
    """The id of something that was learned."""
    return _whole(given, "candidate", "palyra learn list --state all", (listed,))


def schedule(given: str, listed: Callable[[], Iterable[str]]) -> str:
    return _whole(given, "schedule", "palyra schedule list", (listed,))


def task(given: str, listed: Callable[[], Iterable[str]]) -> str:
    """The id of a background task."""
    return _whole(given, "task", "palyra tasks", (listed,))


def incident(given: str, listed: Callable[[], Iterable[str]]) -> str:
    return _whole(given, "incident", "palyra incidents", (listed,))


def notice(given: str, listed: Callable[[], Iterable[str]]) -> str:
    return _whole(given, "notice", "palyra notices", (listed,))


def _whole(
    given: str, what: str, lister: str, places: Iterable[Callable[[], Iterable[str]]]
) -> str:
    """The whole id; places are looked at in their order until one holds it."""
    part = given.strip().upper()
    if len(part) == _WHOLE_ID:
        return ids.check(part, f"the id of the {what}")
    if not _PART.fullmatch(part):
        one = f"an {what}" if what[0] in "aeiou" else f"a {what}"
        named = ", its number or its name" if what == "session" else ""
        raise InvalidInput(
            f"{given!r} is not the id of {one}: give its 26 characters, at least the first"
            f" {_SHORTEST}{named}; `{lister}` lists them"
        )
    for place in places:
        found = list(dict.fromkeys(each for each in place() if each.startswith(part)))
        if len(found) > 1:
            some = ", ".join(found[:_MOST_NAMED]) + (", …" if len(found) > _MOST_NAMED else "")
            raise InvalidInput(f"{len(found)} ids begin with {part}: {some}; give more characters")
        if found:
            return found[0]
    raise NotFound(f"there is no {what} whose id begins with {part}: `{lister}` lists them")
