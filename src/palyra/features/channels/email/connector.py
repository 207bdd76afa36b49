"""E-mail: a mailbox that is read over IMAP as soon as something comes (IDLE), and answers by SMTP
in the thread of each mail.

A mail is behind us when it is on disk: its number is stored in the same step. Mail knows no keys;
the id of an answer is the same for every attempt, so that most mail programs show it once, but it
may arrive twice and is said to.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from palyra.core.errors import InvalidInput
from palyra.features.channels.contract import (
    Abilities,
    ConnectionRefused,
    ConnectorLimits,
    ConnectorSettings,
    Inbox,
    Lost,
    Mark,
    Me,
    OutgoingMessage,
    SendFailed,
    SentReceipt,
)
from palyra.features.channels.email import smtp
from palyra.features.channels.email.mailbox import ImapMailbox
from palyra.features.channels.email.parse import MailParser, ParsedMail
from palyra.features.channels.email.servers import server
from palyra.features.channels.email.smtp import PostOffice
from palyra.features.channels.message_splitter import LengthLimit

T = TypeVar("T")
log = logging.getLogger("palyra.channels")

_MOST_SUBJECTS = 1_000


class Email:
    abilities = Abilities(threads=True, files=True)
    limits = ConnectorLimits(
        text=LengthLimit(50_000), files=10, file_bytes=10 << 20, per_second=2.0
    )

    def __init__(self, given: ConnectorSettings) -> None:
        settings = given.settings
        self.name = given.name
        self._now_ms = given.now_ms
        self._own = settings["address"].strip().casefold()
        if not smtp.recipients(self._own) or "," in self._own or not self._own.isprintable():
            raise InvalidInput(f"channel {given.name}: address must be an e-mail address")
        ca, user = settings.get("ca", ""), settings.get("user") or self._own
        imap, password = server(settings["imap"], 993, ca), settings["password"]
        self._mailbox = partial(
            ImapMailbox, imap, user, password, settings.get("folder") or "INBOX"
        )
        self._office = PostOffice(server(settings["smtp"], 465, ca), user, password)
        self._reader = MailParser(self._own, settings.get("authserv", "").strip(), given.readable)
        # What the mails of a thread are called; looked up in the mailbox if it is not here.
        self._subjects: OrderedDict[str, str] = OrderedDict()
        self._up = False

    async def serve(self, door: Inbox) -> None:
        box = self._mailbox()
        with _Aside(box, self.name) as aside:
            await aside.do(partial(box.open, await door.recall(), self._now_ms()))
            # From here on nothing is missed, also if nothing comes before the next start.
            await door.remember(box.cursor)
            self._up = True
            try:
                await door.connected(self._me)
                while True:
                    for uid in await aside.do(box.news):
                        await self._take(door, box, aside, uid)
                    door.alive()
                    await aside.do(box.wait)
            finally:
                self._up = False

    async def _take(self, door: Inbox, box: ImapMailbox, aside: "_Aside", uid: int) -> None:
        def fetch() -> ParsedMail | None:
            found = box.fetch(uid)
            return self._reader.read(found[0], left_out=found[1]) if found is not None else None

        read = await aside.do(fetch)
        box.last = uid
        if read is None or read.message is None:
            if read is not None:
                log.info("channel %s leaves a mail %s", self.name, read.why)
            await door.remember(box.cursor)
        else:
            self._remember(read.message.thread, read.subject)
            await door.take(read.message, cursor=box.cursor)
        await aside.do(partial(box.seen, uid))

    async def send(self, out: OutgoingMessage) -> SentReceipt:
        if not self._up:
            raise Lost("the mailbox is not connected")
        people = smtp.recipients(out.conversation)
        if not people:
            raise SendFailed(f"{out.conversation[:60]!r} is no e-mail address", permanent=True)
        subject = await self._subject(out)
        try:
            mail = smtp.compose(out, self.name, self._own, subject, self._now_ms())
        except ValueError as error:
            raise SendFailed(f"the mail cannot be written: {error}", permanent=True) from error
        try:
            await self._office.post(mail, self._own, people)
        except ConnectionRefused as error:
            # What comes in still comes: only this is not sent, and is tried again.
            raise SendFailed(str(error)) from error
        # A plain text, not the header that it is there.
        return SentReceipt(str(mail["Message-ID"]))

    async def _subject(self, out: OutgoingMessage) -> str:
        if not out.thread:
            first = next((line.strip("#*_` ") for line in out.text.split("\n") if line.strip()), "")
            return first[:77] + "…" if len(first) > 78 else first or smtp.NAME
        known = self._subjects.get(out.thread)
        if known is None:
            box = self._mailbox()
            with _Aside(box, self.name) as aside:
                try:
                    known = await aside.do(partial(box.subject, out.thread))
                except (Lost, ConnectionRefused):
                    return f"Re: {smtp.NAME}"
            self._remember(out.thread, known)
        return f"Re: {known or smtp.NAME}"

    def _remember(self, thread: str, subject: str) -> None:
        if thread:
            self._subjects[thread] = subject
            self._subjects.move_to_end(thread)
            if len(self._subjects) > _MOST_SUBJECTS:
                self._subjects.popitem(last=False)

    async def edit(self, conversation: str, native_id: str, text: str, *, thread: str = "") -> None:
        raise SendFailed("a mail that was sent cannot be changed", permanent=True)

    async def typing(self, conversation: str, *, thread: str = "") -> None:
        """Do nothing: e-mail cannot show typing."""

    async def acknowledge(self, conversation: str, native_id: str, mark: Mark) -> None:
        """Do nothing: mail has no such signs; a mail about it would be noise."""

    async def test(self) -> Me:
        box = self._mailbox()
        with _Aside(box, self.name) as aside:
            await aside.do(partial(box.open, "", self._now_ms()))
        await self._office.check()
        return self._me

    @property
    def _me(self) -> Me:
        local, _, domain = self._own.partition("@")
        return Me(account=self._own, names=(self._own, f"@{local}"), place=domain)

    async def close(self) -> None:
        self._up = False


class _Aside:
    """A thread for one mailbox: waiting for mail takes minutes, and would hold up the threads that
    all others share.
    """

    def __init__(self, box: ImapMailbox, name: str) -> None:
        self._box = box
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"mail-{name}")

    async def do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def __enter__(self) -> "_Aside":
        return self

    def __exit__(self, *_: object) -> None:
        # Whatever waits on the connection ends with it, and the thread after that.
        self._box.cut()
        self._pool.submit(self._box.close)
        self._pool.shutdown(wait=False)
