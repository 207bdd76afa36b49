"""Facts about the values in a call's arguments: the origin of each, and which of them a grant
binds.

The rule: a grant covers a call only if every value that says where the call goes is one that the
grant names, and no amount is larger.
"""

from decimal import Decimal, InvalidOperation
from typing import Literal

from msgspec import Struct

from palyra.core.argument_roles import SINKS, SOFT, STRICT, Role

Origin = Literal["none", "user", "trusted", "unknown", "untrusted"]
WORST: tuple[Origin, ...] = ("none", "user", "trusted", "unknown", "untrusted")
LONGEST_VALUE = 200
# However many things "all" are, a run of calls beyond this is looked at by a person.
MOST_CALLS = 20
VOUCHED: frozenset[Origin] = frozenset({"none", "user", "trusted"})


class ArgumentOrigin(Struct, frozen=True, omit_defaults=True):
    """One argument of a call, or one kind of thing found inside a text. `origin` is the worst of
    its values, `sources` where the untrusted ones are from.
    """

    name: str
    role: Role
    origin: Origin = "none"
    values: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


class CallValues(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts about a call's arguments, for policy.

    `declared`: the tool says what its arguments are for. `planned`: so many calls of this kind the
    user's words ask for, beyond those that were made. `vouched`: everything that says where this
    call goes was said by the user or comes from a trusted source.
    """

    arguments: tuple[ArgumentOrigin, ...] = ()
    declared: bool = False
    reads_only: bool = False
    same_source: bool = False
    planned: int = 0
    vouched: bool = False


NO_VALUES = CallValues()


def sinks_key(values: CallValues) -> str:
    """The same for calls that go to the same place."""
    strict = (
        f"{each.name}={text.strip().casefold()}"
        for each in values.arguments
        if each.role in STRICT and each.role != "amount"
        for text in sorted(each.values)
    )
    return "\n".join(strict)


_MOST_SHOWN, _LONGEST_SHOWN = 5, 120
# Up to this many characters a grant is still read by whoever gives it.
_MOST_BOUND = 2_000
_UPTO = "<="
_RATE = "calls<="
# In the place of a value: whoever the user named, or a trusted source; what the tool's own source
# has shown.
_TRUSTED = "~trusted"
_OWN = "~source"
_PERIODS: dict[str, int] = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "session": 0}
_MOST_CALLS = 10_000


class Rate(Struct, frozen=True):
    """At most so many calls in a time; 0: as long as the grant holds."""

    calls: int
    period_ms: int


def rate(limits: str) -> Rate | None:
    """Return how often a grant may be used, if it is limited."""
    for line in limits.split("\n"):
        if line.startswith(_RATE):
            return read_rate(line.removeprefix(_RATE))
    return None


def read_rate(text: str) -> Rate | None:
    """`10/hour`; None for what is none."""
    number, slash, period = text.strip().partition("/")
    fits = number.isascii() and number.isdecimal() and slash and period in _PERIODS
    calls = int(number) if fits and len(number) <= 5 else 0
    return Rate(calls, _PERIODS[period]) if 0 < calls <= _MOST_CALLS else None


def limited(limits: str, *, often: str = "", upto: str = "") -> str:
    """The same limits with another bound for amounts, or at most so many calls. Empty if they
    cannot have that.
    """
    lines = [line for line in limits.split("\n") if line and not line.startswith(_RATE)]
    if upto:
        without = [line for line in lines if not line.startswith(f"amount{_UPTO}")]
        number = _number(upto)
        if len(without) == len(lines) or number is None or number < 0:
            return ""
        lines = [*without, f"amount{_UPTO}{upto.strip()}"]
    if often:
        if read_rate(often) is None:
            return ""
        lines.append(f"{_RATE}{often.strip()}")
    return "\n".join(sorted(set(lines)))


def bound_to_known(values: CallValues) -> str:
    """Like `bound`, but to anyone whom the user named or a trusted source, such as an address book.
    Empty where the call goes to nobody, or to somebody unknown.
    """
    limits = bound(values)
    people = [each for each in values.arguments if each.role == "recipient"]
    if not limits or not any(each.origin in ("user", "trusted") for each in people):
        return ""
    if any(each.origin not in VOUCHED for each in people):
        return ""
    lines = [line for line in limits.split("\n") if not line.startswith("recipient=")]
    return "\n".join(sorted({*lines, f"recipient{_TRUSTED}"}))


def bounds(values: CallValues) -> tuple[str, ...]:
    """What a grant for a call can bind, the narrowest first."""
    found = (bound(values), bound_to_plan(values), bound_to_known(values))
    return tuple(dict.fromkeys(filter(None, found)))


def bound_to_plan(values: CallValues) -> str:
    """The rest of what the user asked for, or the plan says: so many calls more, to the same
    place, about things that this source has shown. Empty where there is no rest.
    """
    soft = {each.role for each in values.arguments if each.role in SOFT and each.origin != "none"}
    soft -= {"when"}
    limits = bound(values)
    if values.planned < 2 or not values.same_source or not soft or not limits:
        return ""
    lines = [line for line in limits.split("\n") if line.partition("=")[0] not in {*soft, "when"}]
    lines += [f"{role}{_OWN}" for role in soft]
    return limited("\n".join(lines), often=f"{values.planned - 1}/session")


def limits_in_words(limits: str) -> str:
    """What a grant binds, for a person."""
    said: list[str] = []
    for line in limits.split("\n"):
        role, mark, _ = line.partition("~")
        found = rate(line)
        if found is not None:
            often = next((name for name, ms in _PERIODS.items() if ms == found.period_ms), "")
            calls = "call" if found.calls == 1 else "calls"
            when = {"session": "in this session", "hour": "an hour"}.get(often, f"a {often}")
            said.append(f"at most {found.calls} {calls} {when}")
        elif mark and "=" not in role:
            whom = "known to you or a trusted source" if line.endswith(_TRUSTED) else "found there"
            said.append(f"any {role} {whom}")
        else:
            said.append(line)
    return ", ".join(said)


def bound(values: CallValues) -> str:
    """The values that a wider approval of a call binds, one a line: `recipient=bob@x.example`,
    `amount<=100`. Empty where nothing says where the call goes.
    """
    there = [each for each in values.arguments if each.role in SINKS and each.origin != "none"]
    # What goes to somebody may go there on another day.
    if any(each.role in STRICT for each in there):
        there = [each for each in there if each.role != "when"]
    lines = [
        f"{each.role}{_UPTO if each.role == 'amount' else '='}{value}"
        for each in there
        for value in each.values
    ]
    text = "\n".join(sorted(set(lines)))
    whole = all(
        "\n" not in value
        and len(value) < LONGEST_VALUE
        and (each.role != "amount" or _number(value) is not None)
        for each in there
        for value in each.values
    )
    return text if whole and len(text) <= _MOST_BOUND else ""


def within(limits: str, values: CallValues) -> bool:
    """Return whether a call stays within what a grant binds."""
    named: dict[str, set[str]] = {}
    trusted: set[str] = set()
    own: set[str] = set()
    most: Decimal | None = None
    for line in limits.split("\n"):
        if line.startswith(_RATE):
            continue  # Who counts calls looks at it.
        if line.endswith(_TRUSTED) and "=" not in line:
            trusted.add(line.removesuffix(_TRUSTED))
            continue
        if line.endswith(_OWN) and "=" not in line:
            own.add(line.removesuffix(_OWN))
            continue
        role, mark, value = line.partition(_UPTO) if line.startswith("amount") else ("", "", "")
        if mark:
            most = max(most or Decimal(value), Decimal(value))
        else:
            role, _, value = line.partition("=")
            named.setdefault(role, set()).add(value)
    strict = any(role in STRICT for role in (*named, *trusted))
    for each in values.arguments:
        if each.origin == "none" or (each.role == "when" and (strict or own)):
            continue
        if each.role in own:
            if not values.same_source:
                return False
            continue
        if each.role == "amount":
            if most is None or not all(_upto(value, most) for value in each.values):
                return False
        elif each.role in trusted:
            if each.origin not in VOUCHED:
                return False
        elif each.role in SINKS:
            if not each.values or not set(each.values) <= named.get(each.role, set()):
                return False
        elif each.origin == "untrusted":
            return False  # Somebody else's address in a text was not what was approved.
    return True


def _upto(value: str, most: Decimal) -> bool:
    number = _number(value)
    return number is not None and number <= most


def _number(value: str) -> Decimal | None:
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def doubtful(values: CallValues) -> tuple[ArgumentOrigin, ...]:
    """The sinks that nobody vouches for."""
    return tuple(
        each
        for each in values.arguments
        if each.origin not in VOUCHED and (each.role in SINKS or each.origin == "untrusted")
    )


def value_words(each: ArgumentOrigin) -> str:
    """An argument that nobody vouches for, and where it is from, in words."""
    what = ", ".join(text[:_LONGEST_SHOWN] for text in each.values[:_MOST_SHOWN])
    if each.origin != "untrusted":
        return f"{each.name} {what} was said by nobody"
    where = ", ".join(each.sources[:_MOST_SHOWN])
    return f"{each.name} {what} was found only in {where or 'untrusted content'}"
