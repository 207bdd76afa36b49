"""Roles of a tool's arguments: where something goes (sinks), what goes there (content), and whether
a call only reads. Built-in tools declare them; for third-party tools they are proposed from names
and schema, and a person accepts them.

The rule: in doubt, the stricter of two is proposed. A tool that declares nothing is judged by the
label of the conversation alone.
"""

import re
from typing import Any, Literal, get_args

from msgspec import Struct

Role = Literal[
    "recipient",
    "account",
    "amount",
    "url",
    "host",
    "path",
    "command",
    "target",
    "when",
    "content",
    "other",
]
ROLES: tuple[Role, ...] = get_args(Role)
# Where a call goes, or what it costs: each must be vouched for. The other sinks say which thing is
# meant, in the place that the tool is for.
STRICT: frozenset[Role] = frozenset({"recipient", "account", "amount", "url", "host", "command"})
SOFT: frozenset[Role] = frozenset({"path", "target", "when"})
SINKS: frozenset[Role] = STRICT | SOFT


class ArgumentUse(Struct, frozen=True, omit_defaults=True):
    name: str
    role: Role


class ToolUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`reads_only`: a call changes nothing and tells nobody. `high_impact`: it moves money,
    deletes, shares, publishes or speaks to others. `trusted_results`: what it returns was written
    by the user, like an address book.
    """

    arguments: tuple[ArgumentUse, ...] = ()
    reads_only: bool = False
    high_impact: bool = True
    trusted_results: bool = False

    def role(self, name: str) -> Role:
        return next((each.role for each in self.arguments if each.name == name), "other")


def uses(*, reads_only: bool = False, high_impact: bool = True, **roles: Role) -> ToolUse:
    """The declaration of a built-in tool, each argument with its role."""
    found = tuple(ArgumentUse(name, role) for name, role in roles.items())
    return ToolUse(arguments=found, reads_only=reads_only, high_impact=high_impact)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_SPLIT = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

_NAMES: tuple[tuple[Role, str], ...] = (
    (
        "content",
        "body text message content subject title description note notes html comment summary query"
        " question prompt caption details reason memo keyword keywords search pattern data markdown"
        " instructions snippet agenda topic headline label labels tag tags review location place"
        " address city country region room venue",
    ),
    (
        "account",
        "iban account accounts bic swift card beneficiary payee wallet password passwords secret"
        " token pin credential credentials",
    ),
    (
        "other",
        "permission permissions mode type kind status state sort order format language lang"
        " currency unit limit offset page priority size count color access cursor max min top n"
        " results depth width height quantity guests adults children nights days hours minutes",
    ),
    ("amount", "amount price total sum payment budget cost fee tip salary limit_amount rate"),
    (
        "recipient",
        "recipient recipients to cc bcc email emails participant participants attendee attendees"
        " invitee invitees user users username usernames channel channels member members phone"
        " contact contacts guest guests audience person people receiver destinations share sender"
        " assignee assignees reviewer reviewers collaborator collaborators group who handle"
        " chat conversation agent owner manager employee customer client",
    ),
    ("url", "url urls uri link links href webhook endpoint callback website page site remote"),
    ("host", "host hosts hostname domain server ip"),
    (
        "path",
        "path paths file files filename filenames filepath folder directory dir source destination"
        " target dest src",
    ),
    ("command", "command commands cmd script code sql shell exec expression args program"),
    (
        "target",
        "id ids uuid key number ref reference ticket issue repo repository branch name hotel"
        " restaurant flight company event thread product item order booking invoice project board"
        " list calendar",
    ),
    (
        "when",
        "date dates day time start end from until when due deadline begin checkin checkout arrival"
        " departure datetime timestamp recurrence starts ends",
    ),
)
_ROLE_OF: dict[str, Role] = {
    word: role for role, words in reversed(_NAMES) for word in words.split()
}
_FORMATS: dict[str, Role] = {
    "email": "recipient",
    "uri": "url",
    "url": "url",
    "hostname": "host",
    "ipv4": "host",
    "date": "when",
    "date-time": "when",
    "time": "when",
}
_READS = _set(
    "get list read search find fetch show view look lookup query count check describe browse"
    " summarize summarise status history info retrieve compare inspect download preview"
)
_CHANGES = _set(
    "send create add update delete remove set write share pay transfer reserve cancel move"
    " rename append edit publish invite forward upload run execute archive mark save buy merge"
    " close open assign put insert import make react subscribe unsubscribe approve grant"
    " revoke reset commit push deploy trash wire log freeze stop start new complete respond rename"
    " reply comment tweet kick ban dm purge wipe erase destroy terminate suspend block lock"
    " disable enable refund withdraw drop discard empty unlock disarm"
)
# What is done, and what it is done to.
_HIGH = _set(
    "send share pay transfer delete remove post publish invite reply forward grant revoke"
    " order buy cancel run execute upload push merge deploy tweet kick ban reset"
    " subscribe unsubscribe message email dm comment deactivate trash wire purge wipe erase destroy"
    " terminate suspend freeze refund withdraw drop discard empty unlock disarm"
)
_HIGH_THINGS = _set(
    "money payment transaction password passwords credential credentials token tokens"
    " permission permissions access role roles"
)
_MONEY = _set(
    "money payment payments transaction transactions transfer pay bank banking wire invoice"
    " invoices ledger refund"
)
# Arguments that only something has which moves money.
_PAYS = _set("iban currency payee beneficiary")
_OWN = frozenset({"contact", "contacts", "addressbook", "people", "directory"})


def proposed(server: str, name: str, schema: dict[str, Any], *, read_only: bool) -> ToolUse:
    """Return what a third-party tool is likely to do with its arguments."""
    words = _words_of(server, name)
    properties = schema.get("properties")
    named = {piece for key in properties or () for piece in _pieces(key)}
    money = not _MONEY.isdisjoint((*words, *_pieces(server))) or not _PAYS.isdisjoint(named)
    arguments = tuple(
        ArgumentUse(key, _role(key, each if isinstance(each, dict) else {}, money=money))
        for key, each in (properties.items() if isinstance(properties, dict) else ())
    )
    verb = next((each for each in words if each in _READS or each in _CHANGES), "")
    verb = verb or next((each for each in words if each in _HIGH), "")
    changes = _CHANGES - {"open"} if read_only or verb in _READS else _CHANGES
    reads = (read_only or verb in _READS) and changes.isdisjoint(words)
    own = not _OWN.isdisjoint((*words, *_pieces(server)))
    high = verb in _HIGH or not _HIGH_THINGS.isdisjoint(words)
    return ToolUse(
        arguments=arguments,
        reads_only=reads,
        high_impact=not reads and high,
        trusted_results=reads and own,
    )


def _pieces(name: str) -> list[str]:
    return [each.lower() for each in _SPLIT.findall(name)]


def _words_of(server: str, name: str) -> list[str]:
    """The words of a tool's name without the server's in front, and without what only names a
    thing: a merge request merges nothing.
    """
    words, own = _pieces(name), _pieces(server)
    while len(words) > 1 and words[0] in own:
        del words[0]
    return [
        each
        for at, each in enumerate(words)
        if at + 1 == len(words) or words[at + 1] not in ("request", "requests")
    ]


def _role(name: str, schema: dict[str, Any], *, money: bool) -> Role:
    if "enum" in schema or schema.get("type") == "boolean":
        return "other"
    given = schema.get("format")
    items = schema.get("items")
    if not given and isinstance(items, dict):
        given = items.get("format")
    if isinstance(given, str) and given in _FORMATS:
        return _FORMATS[given]
    pieces = _pieces(name)
    if pieces and pieces[-1] in ("id", "ids"):
        # A user's id is whom something goes to; another thing's id is which thing is meant.
        before = _ROLE_OF.get(pieces[-2]) if len(pieces) > 1 else None
        return before if before in ("recipient", "account") else "target"
    for each in reversed(pieces):
        role = _ROLE_OF.get(each)
        if role is None:
            continue
        if role == "recipient" and money:
            return "account"
        number = schema.get("type") in ("number", "integer")
        if number and role in ("content", "recipient", "path", "url"):
            return "other"
        return role
    kind = schema.get("type", "string")
    if kind in ("number", "integer"):
        # How much, or which.
        return "amount" if money else "target"
    return "target" if kind == "string" else "other"
