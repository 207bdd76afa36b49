"""A message of ours as a mail: in its thread, marked as written by a machine so that no other
machine answers it.
"""

import re
from datetime import UTC, datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from hashlib import sha256

from palyra.features.channels.contract import OutgoingMessage

NAME = "Palyra"
_MESSAGE_ID = re.compile(r"<[^<>\s]{1,250}>")
# Long lines are not folded: a message id that is broken into pieces is another one.
_POLICY = policy.SMTP.clone(max_line_length=900)


def message_id(channel: str, key: str, domain: str) -> str:
    """The same for every attempt, so that whoever looks at ids shows it once."""
    return f"<{sha256(f'{channel}/{key}'.encode()).hexdigest()[:40]}@{domain}>"


def answered(out: OutgoingMessage) -> str:
    """The id of the mail that it answers; empty if it answers none."""
    return _id(out.reply_to) or _id(out.thread)


def compose(
    out: OutgoingMessage, channel: str, own: str, subject: str, now_ms: int
) -> EmailMessage:
    local, _, domain = own.rpartition("@")
    mail = EmailMessage(_POLICY)
    mail["From"] = Address(NAME, local, domain)
    mail["To"] = tuple(
        Address("", *each.rpartition("@")[::2]) for each in recipients(out.conversation)
    )
    mail["Subject"] = " ".join(subject.split())[:200]
    mail["Date"] = format_datetime(datetime.fromtimestamp(now_ms / 1_000, UTC))
    mail["Message-ID"] = message_id(channel, out.key, domain)
    if parent := answered(out):
        mail["In-Reply-To"] = parent
        root = _id(out.thread)
        mail["References"] = parent if root in ("", parent) else f"{root} {parent}"
    mail["Auto-Submitted"] = "auto-replied"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(_whole(out.text), cte="quoted-printable")
    for file in out.files:
        main, _, sub = file.media_type.partition("/")
        mail.add_attachment(
            file.data,
            maintype=main or "application",
            subtype=sub or "octet-stream",
            filename=_whole(file.name),
        )
    return mail


def recipients(conversation: str) -> list[str]:
    return [
        each
        for each in (part.strip() for part in conversation.split(","))
        if "@" in each and not each.startswith("@")
    ]


def _id(text: str) -> str:
    found = _MESSAGE_ID.match(text)
    return found[0] if found is not None else ""


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
