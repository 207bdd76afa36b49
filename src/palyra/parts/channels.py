"""The channels: what hears, what answers and what keeps the connections, put together when somebody wants something of them."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from palyra import config
from palyra.domain.ids import OWNER
from palyra.parts.ground import Ground
from palyra.policy.store import PolicyStore
from palyra.runtime.answers import Answers
from palyra.runtime.attachments import Attachments
from palyra.runtime.channels.late import LateChannels
from palyra.runtime.gateway import Gateway
from palyra.runtime.hub import Hub
from palyra.runtime.judging import Judging
from palyra.runtime.memory import Memory
from palyra.runtime.notices import Notices
from palyra.runtime.routing import Models
from palyra.runtime.session_verbs import Sessions
from palyra.tools.catalogue import Catalogue

if TYPE_CHECKING:
    from palyra.runtime.channels.channels import Channels


def channels(
    ground: Ground,
    env: Mapping[str, str],
    *,
    gateway: Gateway,
    sessions: Sessions,
    answers: Answers,
    judging: Judging,
    policy: PolicyStore,
    catalogue: Catalogue,
    memory: Memory,
    models: Models,
    notices: Notices,
    hub: Hub,
) -> LateChannels:
    """The channels of this daemon. Who has none does not pay for what they are made of."""

    def made() -> "Channels":
        return _made(ground, env, gateway, sessions, answers, judging, policy, catalogue, memory, models, notices, hub)

    return LateChannels(made)


def _made(
    ground: Ground,
    env: Mapping[str, str],
    gateway: Gateway,
    sessions: Sessions,
    answers: Answers,
    judging: Judging,
    policy: PolicyStore,
    catalogue: Catalogue,
    memory: Memory,
    models: Models,
    notices: Notices,
    hub: Hub,
) -> "Channels":
    from palyra.runtime.channels.asking import Asking
    from palyra.runtime.channels.book import Book
    from palyra.runtime.channels.channels import Channels
    from palyra.runtime.channels.commands import Commands
    from palyra.runtime.channels.connections import Connections
    from palyra.runtime.channels.holding import Holding
    from palyra.runtime.channels.intake import Intake
    from palyra.runtime.channels.outbox import Outbox
    from palyra.runtime.channels.pairing import PairingDesk
    from palyra.runtime.channels.posting import Posting
    from palyra.runtime.channels.sending import Sending
    from palyra.runtime.channels.submitting import Submitting
    from palyra.runtime.channels.telling import Telling
    from palyra.tools import message as message_tools

    db, clock, redactor = ground.db, ground.clock, ground.redactor

    async def look_up(channel: str, reference: str, servers: Sequence[str]) -> str:
        if reference.startswith("vault:"):
            value = ""
            for host in servers or (None,):
                tool = f"channel:{channel}"
                value = await ground.vault.resolve(reference, principal=OWNER, session="", tool=tool, host=host)
            return value
        return config.secret(reference, env) if reference.startswith(("env:", "file:")) else reference

    book = Book()
    posting = Posting(book, clock, lambda name: connections.connector(name))
    desk = PairingDesk(db, clock, book, posting, notices)
    attachments = Attachments(db, redactor)
    submitting = Submitting(db, clock, book, posting, gateway, sessions, attachments)
    asking = Asking(db, clock, book, posting, answers, notices)
    holding = Holding(db, clock, book, submitting)
    commands = Commands(db, gateway, sessions, models, memory, catalogue, policy, judging, desk, asking, submitting)
    intake = Intake(db, clock, redactor, book, posting, desk, holding, commands)
    connections = Connections(db, clock, redactor, book, notices, intake.take)
    connections.on_change = partial(hub.changed, ("channels",))
    outbox = Outbox(db, clock, redactor, notices, connections.ready, lambda: connections.names)
    # Those who come first need those who come later.
    intake.connections = submitting.connections = connections
    submitting.asked, submitting.answered = asking.asked, asking.answered
    submitting.asked_elsewhere = asking.asked_elsewhere
    sending = Sending(db, redactor, book, posting, connections, attachments)

    def offer(names: tuple[str, ...]) -> None:
        catalogue.renew("channels", message_tools.tools(sending, ground.fence, names) if names else ())

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
