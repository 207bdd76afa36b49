"""The channels, put together when somebody wants something of them.

Messages that the agent sends of its own accord: to the owner where they are, and to those who
were admitted, nobody else.

The rule: what was judged is what is sent. If the one who was named is reached elsewhere by then,
nothing is sent.
"""

from collections.abc import Sequence
from functools import partial

from palyra.agent.approvals import ApprovalService
from palyra.agent.authorize import Authorizer
from palyra.agent.broadcast import Broadcast
from palyra.agent.gateway import Gateway
from palyra.agent.sessions import Sessions
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.core.ids import OWNER
from palyra.core.ports import CallContext
from palyra.features.channels import tools as message_tools
from palyra.features.channels.approval_prompts import ApprovalPrompts
from palyra.features.channels.commands import Commands
from palyra.features.channels.connections import Connections
from palyra.features.channels.debounce import Holding
from palyra.features.channels.intake import Intake
from palyra.features.channels.notice_forwarding import Telling
from palyra.features.channels.outbox import Outbox, Posting
from palyra.features.channels.pairing import PairingDesk
from palyra.features.channels.registry import Book
from palyra.features.channels.rows import people as people_rows
from palyra.features.channels.rows.outbox import SentFile
from palyra.features.channels.rows.people import Person
from palyra.features.channels.run_bridge import Submitting
from palyra.features.channels.service import Channels
from palyra.features.channels.tools import AddressedTo, Recipient, SentMessage
from palyra.features.channels.views import ChatPlace
from palyra.features.memory.service import Memory
from palyra.features.notices.service import Notices
from palyra.features.references.attachments import Attachments
from palyra.features.vault.service import Vault
from palyra.features.wiring import Wiring
from palyra.models.routing import Models
from palyra.policy.store import PolicyStore
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Catalogue

THE_OWNER = "owner"


class Sending:
    def __init__(
        self,
        db: Database,
        redactor: Redactor,
        book: Book,
        posting: Posting,
        connections: Connections,
        attachments: Attachments,
    ) -> None:
        self._db = db
        self._redactor = redactor
        self._book = book
        self._posting = posting
        self._connections = connections
        self._attachments = attachments

    def find(self, to: str) -> Recipient:
        return self._db.read_from_thread(partial(self._find, to=to))

    async def send(
        self, context: CallContext, to: str, text: str, files: tuple[AddressedTo, ...]
    ) -> SentMessage:
        found = await self._db.read(partial(self._find, to=to))
        if files:
            self._check_files(found, files)
        kept: list[SentFile] = []
        for file in files:
            stored = await self._attachments.keep(
                context.principal, context.session_id, file.name, file.data
            )
            kept.append(
                SentFile(context.session_id, stored.artifact, stored.name, stored.media_type)
            )

        clean = await self._redactor.redacted(text)

        def step(tx: Tx) -> str:
            now = self._find(tx, to)
            judged = tape.proposal(tx, context.run_id, context.call_id)
            # Whoever answered may have named somebody else.
            same = judged.arguments.get("to") == to
            if same and judged.scope is not None and judged.scope.recipients != (now.name,):
                raise Conflict(f"{to} is reached as {now.name} by now: make the call again")
            place = ChatPlace(now.channel, now.conversation)
            return self._posting.post(
                tx, place, clean, "message", reply_id=context.key or context.call_id, files=kept
            )

        outbox_id = await self._db.write(step)
        stands = self._connections.status(
            found.channel
        ).state == "connected" and not self._book.is_paused(found.channel)
        return SentMessage(outbox_id, found, stands)

    def _check_files(self, found: Recipient, files: tuple[AddressedTo, ...]) -> None:
        connector = self._connections.connector(found.channel)
        if connector is None or not connector.abilities.files:
            raise InvalidInput(f"{found.channel} cannot send files now: send the text alone")
        limits = connector.limits
        if len(files) > limits.files or any(len(file.data) > limits.file_bytes for file in files):
            raise InvalidInput(
                f"{found.channel} takes {limits.files} files of {limits.file_bytes:,} bytes in one"
                " message"
            )

    def _find(self, tx: Tx, to: str) -> Recipient:
        if to == THE_OWNER:
            return self._owner(tx)
        channel, _, whom = to.partition("/")
        if not whom or not self._is_on(channel):
            raise NotFound(
                f"{to!r} is nobody: write `owner`, CHANNEL/PERSON or CHANNEL/CONVERSATION, with a"
                " channel that is on"
            )
        person = people_rows.find(tx, channel, whom)
        if person is not None and self._is_admitted(tx, person):
            if not person.conversation:
                raise NotFound(
                    f"{whom} has not written on {channel} directly yet, so nobody knows where to"
                    " reach them"
                )
            return self._named(tx, channel, person.conversation)
        people = [
            people_rows.find(tx, channel, each) for each in people_rows.heard_in(tx, channel, whom)
        ]
        if not any(each is not None and self._is_admitted(tx, each) for each in people):
            raise NotFound(
                f"on {channel}, {whom!r} is neither somebody who was admitted nor a conversation of"
                " theirs"
            )
        return self._named(tx, channel, whom)

    def _owner(self, tx: Tx) -> Recipient:
        for person in people_rows.of_principal(tx, OWNER):
            if person.conversation and self._is_on(person.connector):
                return Recipient(THE_OWNER, person.connector, person.conversation)
        raise NotFound(
            "the owner has not written on any channel that is on: they link an account with `palyra"
            " channels people`"
        )

    def _named(self, tx: Tx, channel: str, conversation: str) -> Recipient:
        """One name for each place, so that no policy is passed by with another."""
        owners = people_rows.of_principal(tx, OWNER)
        is_owner = any(
            (each.connector, each.conversation) == (channel, conversation) for each in owners
        )
        return Recipient(
            THE_OWNER if is_owner else f"{channel}/{conversation}", channel, conversation
        )

    def _is_admitted(self, tx: Tx, person: Person) -> bool:
        rules = self._book.rules(person.connector)
        if person.sender in rules.deny:
            return False
        return person.standing(tx.now_ms) != "stranger" or (
            person.sender in rules.allow and not person.revoked_ms
        )

    def _is_on(self, name: str) -> bool:
        """Return whether there is such a channel. What is said on one that is paused waits."""
        channel = self._book.find(name)
        return channel is not None and channel.enabled


def assembled(w: Wiring) -> Channels:
    db, clock, redactor = w.get(Database), w.get(Clock), w.get(Redactor)
    gateway, sessions, answers = w.get(Gateway), w.get(Sessions), w.get(ApprovalService)
    catalogue, notices = w.get(Catalogue), w.get(Notices)

    async def look_up(channel: str, reference: str, servers: Sequence[str]) -> str:
        if reference.startswith("vault:"):
            value = ""
            for host in servers or (None,):
                tool = f"channel:{channel}"
                value = await w.get(Vault).resolve(
                    reference, principal=OWNER, session="", tool=tool, host=host
                )
            return value
        return w.secret(reference) if reference.startswith(("env:", "file:")) else reference

    book = Book()
    posting = Posting(book, clock, lambda name: connections.connector(name))
    desk = PairingDesk(db, clock, book, posting, notices)
    attachments = w.get(Attachments)
    submitting = Submitting(db, clock, book, posting, gateway, sessions, attachments)
    asking = ApprovalPrompts(db, clock, book, posting, answers, notices)
    holding = Holding(db, clock, book, submitting)
    commands = Commands(
        db,
        clock,
        gateway,
        sessions,
        w.get(Models),
        w.get(Memory),
        catalogue,
        w.get(PolicyStore),
        w.get(Authorizer),
        desk,
        asking,
        submitting,
    )
    intake = Intake(db, clock, redactor, book, posting, desk, holding, commands)
    connections = Connections(db, clock, redactor, book, notices, intake.take)
    connections.on_change.connect(partial(w.get(Broadcast).changed, ("channels",)))
    outbox = Outbox(db, clock, redactor, notices, connections.ready, lambda: connections.names)
    # Those who come first need those who come later.
    intake.connections = submitting.connections = connections
    submitting.asked, submitting.answered = asking.asked, asking.answered
    submitting.asked_elsewhere = asking.asked_elsewhere
    sending = Sending(db, redactor, book, posting, connections, attachments)

    def offer(names: tuple[str, ...]) -> None:
        catalogue.renew("channels", message_tools.tools(sending, w.guard, names) if names else ())

    return Channels(
        db,
        clock,
        redactor,
        book,
        posting,
        desk,
        submitting,
        asking,
        intake,
        connections,
        outbox,
        Telling(db, clock, notices, posting, asking),
        look_up,
        committed=gateway.on_commit,
        offer=offer,
    )
