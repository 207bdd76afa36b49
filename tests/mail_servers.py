"""Real mail servers on loopback: aiosmtpd takes mail and delivers it into a mailbox that pymap
serves over IMAP.

As a provider's server does, it checks who sent a mail, writes what it found into
Authentication-Results, and removes whatever somebody else wrote there in its name. What goes to
other people is kept for the test to look at.
"""

import asyncio
import email
import ssl
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email import policy
from email.message import EmailMessage
from typing import Any

import aiosmtplib
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from proxyprotocol.reader import ProxyProtocolReader
from pymap.backend.dict import DictBackend
from pymap.backend.dict.mailbox import MailboxData
from pymap.imap import IMAPServer
from pymap.parsing.message import AppendMessage
from pysasl.hashing import BuiltinHash

from tests.connectors import Trouble

AGENT = "palyra@example.org"
PASSWORD = "the password of the mailbox"
LIST = "team@lists.example.org"
AUTHSERV = "mx.example.org"
_ANSWERS = {
    "rate_limit": "451 4.7.1 too many messages, slow down",
    "gone": "550 5.1.1 no such mailbox",
    "overloaded": "451 4.3.0 try again later",
}


_waiting = MailboxData.update_selected


async def _without_a_hole(self: MailboxData, selected: Any, *, wait_on: Any = None) -> Any:
    """pymap waits for the next change without looking whether there was one since the last command;
    other servers do look.
    """
    if wait_on is not None and selected.mod_sequence != self._mod_sequences.highest:
        wait_on = None
    return await _waiting(self, selected, wait_on=wait_on)


MailboxData.update_selected = _without_a_hole  # type: ignore[method-assign]


class MailServers:
    def __init__(self) -> None:
        # What left for other people: to whom, and the mail.
        self.posted: list[tuple[list[str], EmailMessage]] = []
        self.delivered: list[bytes] = []
        self.troubles: list[Trouble] = []
        self.refuses = False
        self.smtp_port = self.imap_port = 0
        self.unknown: set[str] = set()
        self._backend: Any = None
        self._lines: list[asyncio.StreamWriter] = []
        self._news = asyncio.Condition()

    def authenticate(
        self, server: Any, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        assert isinstance(data, LoginPassword)
        right = (data.login, data.password) == (AGENT.encode(), PASSWORD.encode())
        return AuthResult(success=right and not self.refuses, handled=False)

    async def handle_MAIL(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address == AGENT and not session.authenticated:
            return "530 5.7.0 log in first"
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.unknown:
            return _ANSWERS["gone"]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        content, people = envelope.content, envelope.rcpt_tos
        trouble = self.troubles.pop(0) if self.troubles and session.authenticated else ""
        if trouble in _ANSWERS:
            return _ANSWERS[trouble]
        outside = sorted(each for each in people if each != AGENT)
        if session.authenticated:
            async with self._news:
                self.posted.append(
                    (outside, email.message_from_bytes(content, policy=policy.default))
                )
                self._news.notify_all()
        if AGENT in people or (LIST in people and session.authenticated):
            # A list sends everything to its members, also to who wrote it.
            await self.deliver(self._checked(content, str(envelope.mail_from)))
        if trouble == "answer_lost":
            server.transport.abort()
        return "250 OK"

    async def answered(self, number: str, seconds: float = 20) -> tuple[list[str], EmailMessage]:
        """A mail of ours that answers the one with this number, once there is one."""

        def found() -> list[tuple[list[str], EmailMessage]]:
            return [
                each for each in self.posted if each[1]["In-Reply-To"] == f"<{number}@example.org>"
            ]

        async with self._news:
            await asyncio.wait_for(self._news.wait_for(found), seconds)
        return found()[0]

    def _checked(self, content: bytes, sender: str) -> bytes:
        mail = email.message_from_bytes(content)
        own = [
            value
            for value in mail.get_all("Authentication-Results", [])
            if not str(value).startswith(AUTHSERV)
        ]
        del mail["Authentication-Results"]
        for value in own:
            mail["Authentication-Results"] = value
        domain = str(mail["From"]).rpartition("@")[2].strip("> ")
        found = "pass" if sender.rpartition("@")[2] == domain else "fail"
        head = f"Return-Path: <{sender}>\r\nAuthentication-Results: {AUTHSERV}; dmarc={found} header.from={domain}\r\n"
        return head.encode() + mail.as_bytes(policy=policy.SMTP)

    async def deliver(self, *mails: bytes) -> None:
        self.delivered += mails
        async with self._backend.login.demo_user_identity.new_session() as session:
            await session.append_messages("INBOX", [AppendMessage(each) for each in mails])

    async def flags(self) -> list[list[str]]:
        """The flags of each mail in the mailbox."""
        async with self._backend.login.demo_user_identity.new_session() as session:
            mailbox = await session.mailbox_set.get_mailbox("INBOX")
            return [
                sorted(str(flag) for flag in message.permanent_flags)
                async for message in mailbox.messages()
            ]

    def drop(self) -> None:
        """Cut everybody who reads the mailbox."""
        lines, self._lines = self._lines, []
        for line in lines:
            line.transport.abort()

    def refuse(self) -> None:
        self.refuses = True
        self._backend.login.users_dict.clear()
        self.drop()

    async def write(
        self, mail: EmailMessage, *, sender: str, tls: ssl.SSLContext | None = None
    ) -> None:
        """Somebody sends a mail to the agent; `sender` is who their own server says they are."""
        await aiosmtplib.send(
            mail,
            hostname="127.0.0.1",
            port=self.smtp_port,
            sender=sender,
            recipients=[AGENT],
            use_tls=tls is not None,
            start_tls=False,
            tls_context=tls,
        )

    @asynccontextmanager
    async def running(
        self, tls: ssl.SSLContext | None = None, **options: Any
    ) -> AsyncIterator[None]:
        """`options` are pymap's."""
        loop = asyncio.get_running_loop()
        smtps: dict[str, Any] = {
            "authenticator": self.authenticate,
            "auth_require_tls": False,
            "hostname": AUTHSERV,
        }
        smtp = await loop.create_server(
            lambda: SMTP(self, loop=loop, data_size_limit=64 << 20, **smtps),
            "127.0.0.1",
            0,
            ssl=tls,
        )
        self.smtp_port = smtp.sockets[0].getsockname()[1]
        account = {
            "demo_data": False,
            "demo_user": AGENT,
            "demo_password": PASSWORD,
            "debug": False,
        }
        place = {"host": "127.0.0.1", "port": 0, "cert": None, "key": None, "tls": False}
        rest = {"proxy_protocol": None, "passlib_cfg": None, "inherited_sockets": None}
        self._backend, config = await DictBackend.init(
            Namespace(**account, **place, **rest),
            invalid_user_sleep=0.0,
            hash_context=BuiltinHash(rounds=1),
            **options,
        )
        config.apply_context()
        served = ProxyProtocolReader(config.proxy_protocol).get_callback(
            IMAPServer(self._backend.login, config)
        )

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._lines.append(writer)
            await served(reader, writer)

        imap = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        self.imap_port = imap.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            self.drop()
            smtp.close()
            imap.close()


@asynccontextmanager
async def mail_servers() -> AsyncIterator[MailServers]:
    servers = MailServers()
    async with servers.running():
        yield servers
