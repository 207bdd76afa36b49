"""Messages from chat, and what becomes of one: pure values and the one function that decides.
Preview and routing both call it.

The order of the checks and the names of the reasons are fixed: rules, tests, traces and people
refer to them.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from palyra.core.ids import Principal, check_principal

LARGEST_TEXT = 32 << 10
QUIET_MS = 1_500
LONGEST_WAIT_MS = 6_000

Reason = Literal[
    "accepted",
    "router_off",
    "channel_off",
    "empty",
    "oversized",
    "sender_denied",
    "not_allow_listed",
    "direct_denied",
    "pairing_required",
    "no_mention",
    "broadcast_denied",
    "over_limit",
]
# In the order in which they are looked at; the first that applies is the reason.
SENTENCES: dict[Reason, str] = {
    "router_off": "Messages from chat are switched off for all channels (channel_router.enabled).",
    "channel_off": "This channel is switched off or paused.",
    "empty": "The message has neither text nor files.",
    "oversized": "The message is larger than 32 KiB; send it as a file, or in parts.",
    "sender_denied": "The sender is on this channel's list of people who are not heard.",
    "not_allow_listed": (
        "The sender is neither on this channel's list of people who are heard, nor paired."
    ),
    "direct_denied": "This channel takes no direct messages.",
    "pairing_required": (
        "The sender is not paired yet: they were sent a code, and the owner can approve it."
    ),
    "no_mention": "In a group the agent answers only if it is mentioned.",
    "broadcast_denied": "The message addresses everyone, and this channel does not take those.",
    "over_limit": (
        "The sender has more messages under way, or sent more in a minute, than this channel"
        " allows."
    ),
    "accepted": "The message goes to the agent.",
}
ORDER: tuple[Reason, ...] = tuple(SENTENCES)

DirectPolicy = Literal["deny", "pairing", "allow"]
GroupPolicy = Literal["paired", "allow"]
Broadcast = Literal["deny", "mention_only", "allow"]
# Who somebody is to us: nobody yet; paired; or an identity of one of the daemon's own users, as the
# owner.
Standing = Literal["stranger", "paired", "person"]
# Where a message is. The last four are ends; `failed` was told to somebody.
MessageState = Literal["received", "held", "queued", "answered", "refused", "failed"]


class Sender(Struct, frozen=True, omit_defaults=True):
    """`handle` is the platform's own, stable name for the account. `verified`: the platform vouches
    that it is theirs.
    """

    handle: str
    display: str = ""
    verified: bool = True


class InboundFile(Struct, frozen=True, omit_defaults=True):
    name: str
    data: bytes
    media_type: str = ""


class Inbound(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message as a connector hands it over. `native_id` is unique within the connector: by it a
    duplicate is recognised.

    `mentions_agent` and `mentions_everyone` are the platform's word; mentions in plain text are
    looked for besides. `pressed`: it is no text but a button that was pressed; `text` is then the
    button's value. `forwarded`: its sender passes on what somebody else wrote: it is no command,
    and not to be trusted more than they are. `title`: what stands above the text where a platform
    has that, as the subject of a mail. No command begins with it.
    """

    native_id: str
    conversation: str
    sender: Sender
    text: str = ""
    thread: str = ""
    files: tuple[InboundFile, ...] = ()
    is_direct: bool = False
    mentions_agent: bool = False
    mentions_everyone: bool = False
    reply_to: str = ""
    pressed: bool = False
    sent_ms: int = 0
    forwarded: bool = False
    title: str = ""

    @property
    def whole(self) -> str:
        """The title and the text."""
        return f"{self.title}\n\n{self.text}" if self.title else self.text


class Button(Struct, frozen=True):
    """`value` comes back as the text of a message when it is pressed."""

    label: str
    value: str
    style: Literal["plain", "good", "bad"] = "plain"


class Rules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Admission rules of one channel. Senders are named by their handle."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    direct: DirectPolicy = "pairing"
    # Who is heard in groups: those who are paired or listed, or anybody.
    groups: GroupPolicy = "paired"
    mention: bool = True
    names: tuple[str, ...] = ("@palyra",)
    broadcast: Broadcast = "mention_only"
    isolate_session_by_sender: bool = True
    per_minute: int = 30
    waiting: int = 8
    concurrency: int = 8


class RoutingInput(Struct, frozen=True, kw_only=True):
    """Input of a decision beside the message and the rules: read once, in one moment of the
    store.
    """

    router_on: bool = True
    channel_on: bool = True
    standing: Standing = "stranger"
    # Messages of this sender in the last minute, and those that are under way, without this one.
    recent: int = 0
    under_way: int = 0
    # What the agent is called on this platform, beside the names in the rules.
    called: tuple[str, ...] = ()


class RoutingCheck(Struct, frozen=True):
    """One step of a decision: which, whether it was passed, and what it found."""

    reason: Reason
    passed: bool
    found: str = ""


class Decision(Struct, frozen=True, kw_only=True):
    accepted: bool
    reason: Reason
    sentence: str
    checks: tuple[RoutingCheck, ...] = ()


def decide(message: Inbound, rules: Rules, facts: RoutingInput) -> Decision:
    """Decide what happens to a message. A pure function of these three inputs."""
    checks: list[RoutingCheck] = []
    for reason, refuses, found in _checks(message, rules, facts):
        checks.append(RoutingCheck(reason, not refuses, found))
        if refuses:
            return Decision(
                accepted=False, reason=reason, sentence=SENTENCES[reason], checks=tuple(checks)
            )
    return Decision(
        accepted=True, reason="accepted", sentence=SENTENCES["accepted"], checks=tuple(checks)
    )


def is_heard(message: Inbound, rules: Rules, facts: RoutingInput) -> bool:
    """Return whether a message would be accepted if there were less of it: only such a one is worth
    a word that there is too much.
    """
    too_much = ("oversized", "over_limit")
    return not any(
        refuses and reason not in too_much for reason, refuses, _ in _checks(message, rules, facts)
    )


def _checks(
    message: Inbound, rules: Rules, facts: RoutingInput
) -> Iterable[tuple[Reason, bool, str]]:
    """Yield the checks in their fixed order; each is made only if those before it passed."""
    handle = message.sender.handle
    yield "router_off", not facts.router_on, ""
    yield "channel_off", not facts.channel_on, ""
    yield "empty", not message.text.strip() and not message.files, ""
    size = len(message.whole.encode("utf-8", "surrogatepass"))
    yield "oversized", size > LARGEST_TEXT, f"{size} bytes"
    yield "sender_denied", _listed(handle, rules.deny), handle
    listed = _listed(handle, rules.allow)
    known = listed or facts.standing != "stranger"
    closed = bool(rules.allow) or (not message.is_direct and rules.groups == "paired")
    yield (
        "not_allow_listed",
        closed and not known,
        f"{facts.standing}, {'listed' if listed else 'not listed'}",
    )
    yield (
        "direct_denied",
        message.is_direct and rules.direct == "deny",
        rules.direct if message.is_direct else "a group",
    )
    # Whoever enters a code wants to be known.
    unknown = message.is_direct and rules.direct == "pairing" and not known
    yield (
        "pairing_required",
        unknown and not enters_code(message, rules, facts.called),
        facts.standing,
    )
    named = addressed(message, rules, facts.called)
    everyone = message.mentions_everyone
    called = message.is_direct or named or (everyone and rules.broadcast == "allow")
    yield "no_mention", rules.mention and not called, "mentioned" if named else "not mentioned"
    broadcast = everyone and not message.is_direct
    refused = broadcast and (
        rules.broadcast == "deny" or (rules.broadcast == "mention_only" and not named)
    )
    yield (
        "broadcast_denied",
        refused,
        f"addresses everyone; broadcast = {rules.broadcast}" if broadcast else "",
    )
    over = facts.recent >= rules.per_minute or facts.under_way >= rules.waiting
    found = (
        f"{facts.recent} in a minute of {rules.per_minute}, {facts.under_way} under way of"
        f" {rules.waiting}"
    )
    # A button and a word that ends things must reach us also from somebody who has sent too much.
    yield (
        "over_limit",
        over and not (message.pressed or is_stop(message, rules, facts.called)),
        found,
    )


def _listed(handle: str, names: Sequence[str]) -> bool:
    folded = _folded(handle)
    return any(_folded(name) == folded for name in names)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def addressed(message: Inbound, rules: Rules, called: Sequence[str] = ()) -> bool:
    """Return whether the agent itself is meant: the platform says so, a button of ours was pressed,
    or its name is in the text.
    """
    return (
        message.mentions_agent
        or message.pressed
        or mentioned(message.whole, (*rules.names, *called))
    )


def mentioned(text: str, names: Sequence[str]) -> bool:
    """Return whether one of the names stands in the text as a word of its own: `@palyra`, not
    `@palyrabot` nor `me@palyra.example`.
    """
    return any(_pattern(name).search(text) for name in names if name.strip("@ "))


def unaddressed(text: str, names: Sequence[str]) -> str:
    """The text without the names that it begins or ends with, so that `@palyra: status` is
    `status`.
    """
    before = None
    text = text.strip()
    while before != text:
        before = text
        for name in names:
            if not name.strip("@ "):
                continue
            found = _pattern(name).match(text)
            if found:
                text = text[found.end() :].lstrip(" \t,:;-–—!").strip()
    return text


@lru_cache(maxsize=256)
def _pattern(name: str) -> re.Pattern[str]:
    # Before it no letter, digit or sign that would make it a part of an address; behind it no more
    # of a name or a domain.
    return re.compile(rf"(?<![\w@.+/-]){re.escape(name.strip())}(?![\w@]|[.-]\w)", re.IGNORECASE)


def is_stop(message: Inbound, rules: Rules, called: Sequence[str] = ()) -> bool:
    """Return whether it is the one word that ends everything; no model sees it."""
    return unaddressed(message.text, (*rules.names, *called)).strip(" .!/").casefold() == "stop"


# Exactly what the command takes, and no more: whoever is let in for a code must not come in with
# anything else.
_CODE = re.compile(r"[/!]?pair +[0-9a-tv-z]{4}[ -]?[0-9a-tv-z]{4}", re.IGNORECASE | re.ASCII)


def enters_code(message: Inbound, rules: Rules, called: Sequence[str] = ()) -> bool:
    """Return whether it is `pair CODE`, and nothing besides."""
    if message.files or message.forwarded:
        return False
    return _CODE.fullmatch(unaddressed(message.text, (*rules.names, *called)).strip()) is not None


_BROADCASTS = re.compile(
    r"@(everyone|here|channel|all|room|group)(?!\w)|<!(everyone|here|channel)([|>])|<!subteam\^",
    re.IGNORECASE,
)


def calls_everyone(text: str) -> bool:
    """Return whether a text would ping everybody on some platform."""
    return _BROADCASTS.search(text) is not None


def defused(text: str) -> str:
    """The same to read, without what would ping everybody: a mark that is not seen stands behind
    its first character.
    """
    return _BROADCASTS.sub(lambda found: f"{found[0][0]}\u200b{found[0][1:]}", text)


def principal_of(connector: str, handle: str) -> Principal:
    """The principal of a sender whom nobody has linked to a person."""
    return check_principal(f"channel:{connector}:{_token(handle)}")


def group_principal(connector: str, conversation: str) -> Principal:
    """Return the principal of a shared conversation: a principal of its own, and nobody's
    identity.
    """
    # `#` is escaped in handles, so no sender can have this name.
    return check_principal(f"channel:{connector}:#{_token(conversation, 127)}")


def _token(text: str, most: int = 128) -> str:
    """One word without colons, the same for the same text and for no other."""
    token = quote(text, safe="@._+-=/!", errors="surrogatepass").replace("~", "%7E") or "%"
    if len(token) <= most:
        return token
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:40]
    return f"{token[: most - 41]}~{digest}"


def session_key(
    connector: str, conversation: str, thread: str, principal: str, *, shared: bool
) -> str:
    """Return which session a message belongs to. A shared one has no sender in its key; all others
    are one principal's alone.
    """
    parts = ["channel", connector, _token(conversation), _token(thread) if thread else ""]
    # A colon is escaped in all parts but the last.
    key = ":".join([*parts, "shared" if shared else principal])
    if len(key) <= 180:
        return key
    return f"channel:{connector}:~{sha256(key.encode()).hexdigest()}"


def is_shared(message: Inbound, rules: Rules) -> bool:
    return not message.is_direct and not rules.isolate_session_by_sender


def due_ms(
    first_ms: int, last_ms: int, quiet_ms: int = QUIET_MS, longest_ms: int = LONGEST_WAIT_MS
) -> int:
    """Return when messages that came between these moments are combined: after a little quiet, and
    never much later.
    """
    return min(last_ms + quiet_ms, first_ms + longest_ms)


def combined(texts: Sequence[str]) -> str:
    """Combine several messages into one input, in their order."""
    return "\n".join(text for text in texts if text.strip())


def named(display: str, handle: str, text: str) -> str:
    """Return what one of several people in a conversation said. A name is one line, whatever its
    bearer wrote into it.
    """
    shown = " ".join((display or handle).split())[:64].replace("[", "(").replace("]", ")")
    told = shown if shown == handle or not display else f"{shown} ({handle[:64]})"
    return f"[{told}] {text}"
