"""What a routing decision depends on, read in one moment of the store. Routing and preview read it
with the same function.
"""

from msgspec import Struct

from palyra.features.channels.model import (
    Decision,
    Inbound,
    RoutingInput,
    Standing,
    decide,
    group_principal,
    is_heard,
    is_shared,
    principal_of,
    session_key,
)
from palyra.features.channels.registry import Book
from palyra.features.channels.rows import messages, people
from palyra.store.database import Tx


class Who(Struct, frozen=True, kw_only=True):
    """A sender, as far as we believe them: `principal` is theirs, `acts_as` is whose session and
    tools they use here.
    """

    principal: str
    acts_as: str
    standing: Standing
    session_key: str
    shared: bool

    @property
    def is_user(self) -> bool:
        """Whether they act as a user of the daemon."""
        return self.acts_as.startswith("user:")


class Routed(Struct, frozen=True, kw_only=True):
    decision: Decision
    who: Who
    # Whether they would be heard if there were less of it.
    heard: bool = True


def look(
    tx: Tx, book: Book, connector: str, called: tuple[str, ...], message: Inbound, besides: str = ""
) -> Routed:
    """Decide about a message as things are now. `besides` is the message itself, if it is stored
    already.
    """
    rules = book.rules(connector)
    who = identify(tx, book, connector, message)
    recent, under_way = messages.counts(tx, connector, message.sender.handle, besides)
    facts = RoutingInput(
        router_on=book.router_on,
        channel_on=book.is_on(connector),
        standing=who.standing,
        recent=recent,
        under_way=under_way,
        called=called,
    )
    return Routed(
        decision=decide(message, rules, facts), who=who, heard=is_heard(message, rules, facts)
    )


def identify(tx: Tx, book: Book, connector: str, message: Inbound) -> Who:
    sender = message.sender
    person = people.find(tx, connector, sender.handle)
    own = str(principal_of(connector, sender.handle))
    # A name that anybody can write, as that of a mail, makes nobody the owner.
    standing: Standing = (
        person.standing(tx.now_ms) if person is not None and sender.verified else "stranger"
    )
    principal = person.principal if person is not None and standing == "person" else own
    shared = is_shared(message, book.rules(connector))
    acts_as = str(group_principal(connector, message.conversation)) if shared else principal
    key = session_key(connector, message.conversation, message.thread, principal, shared=shared)
    return Who(
        principal=principal, acts_as=acts_as, standing=standing, session_key=key, shared=shared
    )
