"""The channels, put together when somebody wants something of them."""

from collections.abc import Sequence
from functools import partial

from palyra.agent.approvals import ApprovalService
from palyra.agent.authorize import Authorizer
from palyra.agent.broadcast import Broadcast
from palyra.agent.gateway import Gateway
from palyra.agent.sessions import Sessions
from palyra.core.ids import OWNER
from palyra.features.channels import tools as message_tools
from palyra.features.channels.agent_messages import Sending
from palyra.features.channels.approval_prompts import ApprovalPrompts
from palyra.features.channels.commands import Commands
from palyra.features.channels.connections import Connections
from palyra.features.channels.debounce import Holding
from palyra.features.channels.enqueue import Posting
from palyra.features.channels.intake import Intake
from palyra.features.channels.notice_forwarding import Telling
from palyra.features.channels.outbox import Outbox
from palyra.features.channels.pairing import PairingDesk
from palyra.features.channels.registry import Book
from palyra.features.channels.run_bridge import Submitting
from palyra.features.channels.service import Channels
from palyra.features.memory.service import Memory
from palyra.features.notices.service import Notices
from palyra.features.references.attachments import Attachments
from palyra.features.vault.service import Vault
from palyra.features.wiring import Wiring
from palyra.models.routing import Models
from palyra.policy.store import PolicyStore
from palyra.store.database import Database
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Catalogue


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
    connections.on_change = partial(w.get(Broadcast).changed, ("channels",))
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
        listen=gateway.listeners,
        offer=offer,
    )
