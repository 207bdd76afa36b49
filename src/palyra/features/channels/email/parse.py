"""A mail as a message: who wrote it, to whom, in which thread, what is new in it, and its files.

From is what somebody wrote into a mail. Unless the configured server vouches for it, its sender has
another name here (`unverified/ADDRESS`), so that nobody enters the sessions, memory or permissions
of the person whose address they wrote.

Whether the server that took a mail in vouches for its sender: what Authentication-Results say,
by RFC 8601.

Anybody can write such a header. Each server puts its own lines on top, Received included, so what
stands below the topmost Received came with the mail: it counts for nothing. Above it only the
configured server's results count, and only if what passed is the domain in From. What a sender can
write into a value (in quotes or comments) is never read as a result.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses
from hashlib import sha256
from typing import Any

from imap_tools.message import MailAttachment, MailMessage
from imap_tools.utils import decode_value

from palyra.features.channels.contract import MOST_FILE_BYTES
from palyra.features.channels.model import Inbound, InboundFile, Sender, calls_everyone

_SPACED = re.compile(r"\s*=\s*")
_RESULT = re.compile(r"([a-z0-9-]+)(?:/\d+)?=([a-z]+)")


def vouched(headers: Sequence[tuple[str, str]], authserv: str, domain: str) -> bool:
    """`headers` in the order of the mail, topmost first. `domain` is that of the one address in
    From.
    """
    if not authserv or not domain:
        return False
    passed = False
    for value in _own(headers, authserv.casefold()):
        for method, result, properties in _results(value):
            if method == "dmarc" and properties.get("header.from", domain) == domain:
                if result != "pass":
                    return False
                passed = True
            passed = passed or (result == "pass" and _about(method, properties, domain))
    return passed


def _own(headers: Sequence[tuple[str, str]], authserv: str) -> list[str]:
    """Return the results that this server put on top: one header, or several that stand next to
    each other.
    """
    found: list[str] = []
    for name, value in headers:
        if name.casefold() == "received":
            break
        if name.casefold() == "authentication-results" and _server(value) == authserv:
            found.append(value)
        elif found:
            break
    return found


def _server(value: str) -> str:
    parts = _parts(value)
    words = parts[0].split() if parts else []
    return words[0].casefold() if words else ""


def _results(value: str) -> list[tuple[str, str, dict[str, str]]]:
    found = []
    for part in _parts(value)[1:]:
        first, *more = _SPACED.sub("=", part.strip()).casefold().split() or [""]
        result = _RESULT.fullmatch(first)
        if result is not None:
            properties: dict[str, str] = {}
            for each in more:
                name, _, said = each.partition("=")
                properties.setdefault(name, said)
            found.append((result[1], result[2], properties))
    return found


def _about(method: str, properties: dict[str, str], domain: str) -> bool:
    if method == "dkim":
        signer = properties.get("header.d") or properties.get("header.i", "").rpartition("@")[2]
        return signer == domain or ("." in signer and domain.endswith(f".{signer}"))
    if method == "spf":
        return properties.get("smtp.mailfrom", "").rpartition("@")[2] == domain
    return False


def _parts(value: str) -> list[str]:
    """Return the parts between semicolons, without comments; inside quotes nothing has a meaning.
    Empty if one of them is not closed.
    """
    parts: list[str] = [""]
    depth, quoted, escaped = 0, False, False
    for char in value:
        if escaped:
            escaped = False
            continue
        if char == "\\" and (quoted or depth):
            escaped = True
        elif quoted:
            quoted = char != '"'
            parts[-1] += char if char.isalnum() or char in "@._-" else "?" if quoted else ""
        elif char == "(":
            depth += 1
            parts[-1] += " "
        elif depth:
            depth -= char == ")"
        elif char == '"':
            quoted = True
        elif char == ";":
            parts.append("")
        else:
            parts[-1] += char
    return [] if quoted or depth or escaped else parts


UNVERIFIED = "unverified/"
_MESSAGE_ID = re.compile(r"<[^<>\s]{1,250}>")
_PREFIX = re.compile(
    r"(?:\s*(?:re|aw|antw|sv|vs|fw|fwd|wg|tr|rv)(?:\[\d+\])?\s*:)+\s*", re.IGNORECASE
)
_FORWARD = re.compile(r"\s*(?:fw|fwd|wg|tr|rv|i|enc)\s*:", re.IGNORECASE)
_ORIGINAL = re.compile(
    r"\n(?:-{2,}[ ]?(?:Original Message|Ursprüngliche Nachricht)["
    r" ]?-{2,}|_{20,}\s*\n(?:From|Von):)",
    re.IGNORECASE,
)
_MOST_FILES = 16
# A mail to more people than this is answered to its sender alone.
_MOST_PEOPLE = 20
_MOST_HOPS = 50
# What a parser may raise over bytes that somebody made up.
BROKEN = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)


class Mail(MailMessage):
    """A mail as it was fetched. One that no parser takes, as with parts in parts a thousand deep,
    has its head and nothing else.
    """

    def __init__(self, fetch_data: list[Any]) -> None:
        self.beheaded = 0
        try:
            super().__init__(fetch_data)
        except BROKEN:
            raw = self._get_message_data_parts(fetch_data)[0]
            head = re.split(rb"\r?\n\r?\n", raw, maxsplit=1)[0]
            self.beheaded = len(raw)
            super().__init__([(b"", head + b"\r\n\r\n")])


@dataclass(frozen=True)
class MailParser:
    """`own` is the agent's address; `authserv` the server that is believed; `readable` makes text
    of HTML.
    """

    own: str
    authserv: str
    readable: Callable[[str], str]

    def read(self, mail: Mail, *, left_out: int = 0) -> "ParsedMail":
        """`left_out`: only its head was fetched, because it has so many bytes."""
        try:
            return self._read(mail, left_out or mail.beheaded)
        except BROKEN as error:
            return self._broken(mail, error)

    def _read(self, mail: Mail, left_out: int) -> "ParsedMail":
        head = mail.obj
        sender = self._sender(head)
        address = sender.handle.removeprefix(UNVERIFIED)
        why = "it is our own" if self._is_own(address) else automatic(head)
        if why:
            return ParsedMail(None, f"from {address}: {why}")
        references = _ids(head, "References") or _ids(head, "In-Reply-To")
        own_id = next(iter(_ids(head, "Message-ID")), "") or _made_up(head)
        subject = " ".join(mail.subject.split())
        forwarded = _FORWARD.match(subject) is not None or "Resent-From" in head
        text, files = self._body(mail, whole=forwarded)
        # In an answer the subject says nothing new.
        title = subject if text and not references else ""
        text = text or (subject if not references else "")
        if left_out:
            text = (
                f"{text}\n[the body of this mail, {left_out} bytes, is too large or too broken to"
                " be read]".strip()
            )
        to, everybody = self._addresses(head, "To"), self._addresses(head, "To", "Cc")
        others = sorted({each for each in everybody if not self._is_own(each)} - {address})
        listed = _list(head)
        return ParsedMail(
            Inbound(
                native_id=f"{own_id}#{sha256(sender.handle.encode()).hexdigest()[:8]}",
                conversation=_conversation(address, others, listed),
                sender=sender,
                text=text,
                title=title,
                thread=references[0] if references else own_id,
                files=files,
                is_direct=not others and not listed,
                mentions_agent=any(self._is_own(each) for each in to),
                mentions_everyone=calls_everyone(f"{title}\n{text}"),
                reply_to=references[-1] if references else "",
                sent_ms=int(mail.date.timestamp() * 1_000) if mail.date.year > 1971 else 0,
                forwarded=forwarded,
            ),
            subject=_PREFIX.sub("", subject),
        )

    def _sender(self, head: Message) -> Sender:
        found = [
            (name, each)
            for name, each in getaddresses([_plain(value) for value in head.get_all("From", [])])
            if "@" in each
        ]
        if not found:
            return Sender(f"{UNVERIFIED}nobody", "", verified=False)
        name, address = found[0][0], found[0][1].casefold()
        domain = address.rpartition("@")[2]
        alone = len(found) == 1 and len(head.get_all("From", [])) == 1
        headers = [(key, _plain(value)) for key, value in head.items()]
        shown = "".join(decode_value(*part) for part in decode_header(name))
        if alone and vouched(headers, self.authserv, domain):
            return Sender(address, shown)
        return Sender(f"{UNVERIFIED}{address}", shown, verified=False)

    def _addresses(self, head: Message, *names: str) -> set[str]:
        values = [_plain(value) for name in names for value in head.get_all(name, [])]
        return {address.casefold() for _, address in getaddresses(values) if "@" in address}

    def _is_own(self, address: str) -> bool:
        local, _, domain = address.partition("@")
        return f"{local.partition('+')[0]}@{domain}" == self.own or address == self.own

    def _body(self, mail: Mail, *, whole: bool) -> tuple[str, tuple[InboundFile, ...]]:
        """Return its text and files; for a forwarded mail (`whole`) also the text below."""
        texts: dict[str, list[str]] = {"text/plain": [], "text/html": []}
        files: list[InboundFile] = []
        notes: list[str] = []
        for part in _leaves(mail.obj):
            kind = part.get_content_type()
            if (
                kind in texts
                and part.get_content_disposition() != "attachment"
                and not part.get_filename()
            ):
                data = part.get_payload(decode=True)
                texts[kind].append(
                    decode_value(
                        data if isinstance(data, bytes) else b"", part.get_content_charset()
                    )
                )
                continue
            attached = MailAttachment(part)
            name = (
                attached.filename
                or f"part-{len(files) + 1}{'.eml' if kind == 'message/rfc822' else ''}"
            )
            if len(files) >= _MOST_FILES or attached.size > MOST_FILE_BYTES:
                notes.append(f"[the file {name} was left out: {attached.size} bytes]")
            elif attached.size:
                files.append(InboundFile(name, attached.payload, kind))
        plain = "\n".join(texts["text/plain"])
        text = (
            plain
            if plain.strip()
            else self.readable("\n".join(texts["text/html"]))
            if texts["text/html"]
            else ""
        )
        return "\n".join(
            filter(None, (text.strip() if whole else what_is_new(text), *notes))
        ), tuple(files)

    def _broken(self, mail: Mail, error: BaseException) -> "ParsedMail":
        """Return a stand-in for unreadable mail: it is reported, and not read again and again."""
        name = sha256(bytes(repr(mail.obj.items()), "utf-8", "replace")).hexdigest()[:32]
        text = f"[a mail that cannot be read: {type(error).__name__}]"
        sender = Sender(f"{UNVERIFIED}nobody", verified=False)
        return ParsedMail(
            Inbound(
                native_id=f"<{name}@broken>",
                conversation=f"{UNVERIFIED}nobody",
                sender=sender,
                text=text,
            )
        )


@dataclass(frozen=True)
class ParsedMail:
    """The message; or none, and why it is not taken. `subject` is what an answer is written
    under.
    """

    message: Inbound | None
    why: str = ""
    subject: str = ""


def automatic(head: Message) -> str:
    """Return why a mail was not written by a person, or would go round in circles; empty if nothing
    says so.
    """
    said = _plain(head.get("Auto-Submitted", "no")).partition(";")[0].strip().casefold()
    if said != "no":
        return "it is an automatic answer"
    if _plain(head.get("Precedence", "")).strip().casefold() in ("bulk", "junk", "auto_reply"):
        return "it was sent in bulk"
    if any(
        name in head for name in ("X-Autoreply", "X-Autorespond", "X-Auto-Reply", "Feedback-ID")
    ):
        return "it is an automatic answer"
    if (
        _plain(head.get("Return-Path", "x")).strip() == "<>"
        or head.get_content_type() == "multipart/report"
    ):
        return "it is a mail that came back or a report"
    if "X-Failed-Recipients" in head:
        return "it is a mail that came back"
    address = next(
        (each.casefold() for _, each in getaddresses([_plain(head.get("From", ""))])), ""
    )
    if re.match(r"(mailer-daemon|postmaster|no-?reply|do-?not-?reply)@", address):
        return "nobody reads what is sent there"
    if len(head.get_all("Received", [])) > _MOST_HOPS:
        return "it goes round in circles"
    return ""


def what_is_new(text: str) -> str:
    """The text without what mail programs put below it: the mail that is answered, and a
    signature.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    original = _ORIGINAL.search(text)
    lines = (text[: original.start()] if original else text).rstrip().split("\n")
    quoted = False
    while lines and (not lines[-1].strip() or lines[-1].startswith(">")):
        quoted = quoted or lines[-1].startswith(">")
        lines.pop()
    if quoted and lines and lines[-1].rstrip().endswith(":"):
        # `On Monday … Anna wrote:`, which may be broken into two lines.
        lines.pop()
        if lines and re.match(r"(On|Am|Le|El|Il|Op|Den)\s", lines[-1]):
            lines.pop()
    if "-- " in lines:
        lines = lines[: lines.index("-- ")]
    return "\n".join(lines).strip("\n").rstrip()


def _conversation(sender: str, others: list[str], listed: str) -> str:
    """Return where an answer goes: the list, all who got the mail, or its sender."""
    if listed:
        return listed
    if not others or len(others) > _MOST_PEOPLE:
        return sender
    return ",".join(sorted({sender, *others}))


def _list(head: Message) -> str:
    found = re.search(
        r"<mailto:([^?>\s]+@[^?>\s]+)", _plain(head.get("List-Post", "")), re.IGNORECASE
    )
    if found is not None:
        return found[1].casefold()
    named = re.search(r"<([^<>\s]+)>", _plain(head.get("List-Id", "")))
    return named[1].replace(".", "@", 1).casefold() if named is not None else ""


def _leaves(part: Message) -> Iterator[Message]:
    """The parts of a mail; a mail that is attached to it is one part, not words of its sender."""
    if part.get_content_type() != "message/rfc822" and part.is_multipart():
        for each in part.get_payload():
            if isinstance(each, Message):
                yield from _leaves(each)
    else:
        yield part


def _ids(head: Message, name: str) -> list[str]:
    return _MESSAGE_ID.findall(_plain(head.get(name, "")))


def _made_up(head: Message) -> str:
    digest = sha256(
        repr([(name, _plain(value)) for name, value in head.items()]).encode("utf-8", "replace")
    ).hexdigest()
    return f"<{digest[:32]}@without-id>"


def _plain(value: object) -> str:
    return re.sub(r"[\r\n]+[ \t]*", " ", str(value))
