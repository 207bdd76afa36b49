"""Handing a mail to the SMTP server: one connection for each, and every answer told as what it
means.

A message of ours as a mail: in its thread, marked as written by a machine so that no other
machine answers it.
"""

import logging
import re
import ssl
from datetime import UTC, datetime
from email import policy
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from hashlib import sha256

import aiosmtplib
from aiosmtplib import (
    SMTP,
    SMTPAuthenticationError,
    SMTPException,
    SMTPRecipientRefused,
    SMTPResponseException,
)

from palyra.features.channels.contract import ConnectionRefused, Lost, OutgoingMessage, SendFailed
from palyra.features.channels.email.servers import MailServer

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


_TIMEOUT_S = 30.0
# SMTP names no time: this is how long we wait where a server says that it is too much now.
_WAIT_MS = 60_000


class PostOffice:
    def __init__(self, server: MailServer, user: str, password: str) -> None:
        self._server = server
        self._user = user
        self._password = password

    async def check(self) -> None:
        """Log in and out. Raises Refused or Lost."""
        client = await self._open()
        client.close()

    async def post(self, mail: EmailMessage, sender: str, recipients: list[str]) -> None:
        client = await self._open()
        try:
            await self._envelope(client, sender, recipients)
            data = mail.as_bytes()
            try:
                await client.data(data)
            except SMTPResponseException as error:
                raise _failed(error) from error
            except (SMTPException, OSError, TimeoutError) as error:
                # It may have been taken before the connection went.
                raise SendFailed(
                    f"{self._server.host} did not answer: {type(error).__name__}", maybe_sent=True
                ) from error
        finally:
            client.close()

    async def _envelope(self, client: SMTP, sender: str, recipients: list[str]) -> None:
        refused: list[SMTPRecipientRefused] = []
        try:
            await client.mail(sender)
            for each in recipients:
                try:
                    await client.rcpt(each)
                except SMTPRecipientRefused as error:
                    if error.code < 500:
                        raise
                    refused.append(error)
        except SMTPResponseException as error:
            raise _failed(error) from error
        except (SMTPException, OSError, TimeoutError) as error:
            raise SendFailed(
                f"the connection to {self._server.host} was lost: {type(error).__name__}"
            ) from error
        if len(refused) == len(recipients):
            raise _failed(refused[0])
        for gone in refused:
            logging.getLogger("palyra.channels").warning(
                "a mail goes to the others only: %s", _failed(gone)
            )

    async def _open(self) -> SMTP:
        host, port, security = self._server.host, self._server.port, self._server.security
        client = aiosmtplib.SMTP(
            hostname=host,
            port=port,
            use_tls=security == "tls",
            start_tls=security == "starttls",
            tls_context=self._server.context() if security != "none" else None,
            timeout=_TIMEOUT_S,
        )
        try:
            await client.connect()
            if security == "none":
                await client.ehlo()
            # A relay on this machine may take mail from everybody on it.
            if security != "none" or client.supported_auth_methods:
                await client.login(self._user, self._password)
        except SMTPAuthenticationError as error:
            client.close()
            if error.code < 500:
                raise Lost(f"{host} does not let us in now ({error.code})") from None
            raise ConnectionRefused(
                f"{host} refuses the log-in of {self._user} ({error.code}): check the password"
            ) from None
        except (SMTPException, OSError, TimeoutError) as error:
            client.close()
            if isinstance(error.__cause__, ssl.SSLCertVerificationError):
                raise ConnectionRefused(
                    f"the certificate of {host} is not valid: set ca if it is one of your own"
                ) from error
            raise Lost(f"{host} cannot be reached: {type(error).__name__}") from error
        return client


def _failed(error: SMTPResponseException) -> SendFailed:
    said = " ".join(error.message.split())[:200]
    why = f"the mail server answered {error.code} {said}"
    # 4.7.x is policy: too many, too fast, or come back later (greylisting).
    if error.code == 421 or (error.code < 500 and said.startswith("4.7.")):
        return SendFailed(why, retry_after_ms=_WAIT_MS)
    return SendFailed(why, permanent=error.code >= 500)
