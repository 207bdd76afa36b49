"""E-mail for the contract suite: people with addresses of their own, a mailing list, and the
agent's mailbox on real servers.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from palyra.features.channels.contract import ConnectorSettings, Mark, OutFile
from palyra.features.channels.email.connector import Email
from palyra.features.channels.model import InboundFile
from palyra.features.channels.service import readable
from tests.connectors import Post, Quirk, Trouble, World
from tests.mail_servers import AGENT, AUTHSERV, LIST, PASSWORD, MailServers, mail_servers


def address(name: str) -> str:
    return f"{name}@example.org"


def mail(
    sender: str,
    text: str = "",
    *,
    to: str = AGENT,
    number: str = "",
    files: tuple[InboundFile, ...] = (),
    **head: str,
) -> EmailMessage:
    """`head` are more headers, with _ for -."""
    made = EmailMessage()
    made["From"] = f"{sender.capitalize()} <{address(sender)}>"
    made["To"] = to
    if number:
        made["Message-ID"] = f"<{number}@example.org>"
    for name, value in head.items():
        made[name.replace("_", "-")] = value
    made.set_content(text)
    for file in files:
        main, _, sub = file.media_type.partition("/")
        made.add_attachment(file.data, maintype=main, subtype=sub, filename=file.name)
    return made


def post(people: list[str], sent: Any) -> Post:
    """A mail of ours, as its reader sees it."""
    body = sent.get_body(("plain",))
    text = body.get_content().replace("\r\n", "\n").removesuffix("\n")
    references = str(sent["References"] or "").split()
    files = tuple(
        OutFile(each.get_filename(), _data(each), each.get_content_type())
        for each in sent.iter_attachments()
    )
    return Post(
        str(sent["Message-ID"]),
        ",".join(people),
        text,
        references[0] if references else "",
        (),
        files,
    )


def _data(part: Any) -> bytes:
    data: bytes = part.get_payload(decode=True)
    return data


class EmailWorld:
    quirks: frozenset[Quirk] = frozenset()

    def __init__(self, connector: Email, servers: MailServers) -> None:
        self.connector = connector
        self.servers = servers
        self._number = 0

    async def say(
        self,
        text: str,
        *,
        sender: str = "anna",
        conversation: str = "team",
        direct: bool = False,
        thread: str = "",
        files: tuple[InboundFile, ...] = (),
        everyone: bool = False,
    ) -> None:
        self._number += 1
        head = (
            {}
            if direct
            else {"List_Post": f"<mailto:{LIST}>", "List_Id": "The team <team.lists.example.org>"}
        )
        if thread:
            head["References"] = f"<{thread}@example.org>"
        to = AGENT if direct else LIST
        written = mail(sender, text, to=to, number=f"n{self._number}", files=files, **head)
        await self.servers.write(written, sender=address(sender))

    async def deliver_again(self) -> None:
        await self.servers.deliver(self.servers.delivered[-1])

    async def press(self, post: Post, value: str, *, sender: str = "anna") -> None:
        raise NotImplementedError

    async def posts(self) -> list[Post]:
        return [post(*each) for each in self.servers.posted]

    async def marks(self) -> list[tuple[str, Mark]]:
        return []

    async def typed(self) -> int:
        return 0

    async def trouble(self, kind: Trouble) -> None:
        self.servers.troubles.append(kind)

    async def drop(self) -> None:
        self.servers.drop()

    async def refuse(self) -> None:
        self.servers.refuse()

    def address(self, conversation: str) -> str:
        return LIST


def given(servers: MailServers, **more: str) -> ConnectorSettings:
    settings = {
        "address": AGENT,
        "imap": f"127.0.0.1:{servers.imap_port}",
        "smtp": f"127.0.0.1:{servers.smtp_port}",
        "password": PASSWORD,
        "authserv": AUTHSERV,
        **more,
    }
    return ConnectorSettings("mail", settings, lambda: time.time_ns() // 1_000_000, readable)


@asynccontextmanager
async def mailing(folder: Path) -> AsyncIterator[World]:
    async with mail_servers() as servers:
        connector = Email(given(servers))
        yield EmailWorld(connector, servers)
        await connector.close()
