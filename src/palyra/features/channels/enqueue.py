"""Putting words into the outbox, inside whatever step causes them: cut to the platform's size,
unable to ping everybody.
"""

from collections.abc import Callable, Sequence

from palyra.core.errors import PalyraError
from palyra.features.channels import texts
from palyra.features.channels.contract import Abilities, Connector, ConnectorLimits
from palyra.features.channels.message_splitter import split
from palyra.features.channels.model import Button, defused
from palyra.features.channels.registry import Book
from palyra.features.channels.rows import messages as messages_rows
from palyra.features.channels.rows import outbox
from palyra.features.channels.rows.messages import StoredMessage
from palyra.features.channels.rows.outbox import Body, ReplyKind, SentFile
from palyra.features.channels.views import ChatPlace
from palyra.store.database import Tx
from palyra.system.clock import Clock


class Posting:
    def __init__(
        self, book: Book, clock: Clock, connector: Callable[[str], Connector | None]
    ) -> None:
        self._book = book
        self._clock = clock
        self._connector = connector

    def abilities(self, connector: str) -> Abilities:
        found = self._connector(connector)
        return found.abilities if found is not None else Abilities()

    def post(
        self,
        tx: Tx,
        place: ChatPlace,
        text: str,
        kind: ReplyKind,
        *,
        reply_id: str = "",
        message_id: str = "",
        reply_to: str = "",
        buttons: Sequence[Button] = (),
        files: Sequence[SentFile] = (),
        edits: str = "",
    ) -> str:
        """Say it there, once for each `reply_id`; gives that id."""
        reply_id = reply_id or self._clock.new_id()
        connector = self._connector(place.connector)
        limits, abilities = (
            (connector.limits, connector.abilities)
            if connector is not None
            else (ConnectorLimits(), Abilities())
        )
        pings = kind == "answer" and self._book.rules(place.connector).broadcast == "allow"
        if files and not abilities.files:
            text = "\n".join([text, *(f"(file: {file.name})" for file in files)])
            files = ()
        pieces = split(text if pings else defused(text), limits.text) or [" "]
        bodies = [Body(text=piece, ping_everyone=pings) for piece in pieces]
        bodies[0] = Body(text=pieces[0], reply_to=reply_to, ping_everyone=pings, edits=edits)
        # Buttons and files stand below the last of it.
        last = bodies[-1]
        bodies[-1] = Body(
            text=last.text,
            reply_to=last.reply_to,
            ping_everyone=pings,
            edits=last.edits,
            buttons=tuple(buttons) if abilities.buttons else (),
            files=tuple(files[: limits.files]),
        )
        outbox.add(
            tx,
            reply_id=reply_id,
            connector=place.connector,
            conversation=place.conversation,
            thread=place.thread,
            kind=kind,
            bodies=bodies,
            message_id=message_id,
        )
        return reply_id

    def fail(
        self, tx: Tx, messages: Sequence[StoredMessage], error: PalyraError, *, inside: bool = False
    ) -> None:
        """End messages that cannot become a run, and tell whoever wrote them why. `inside`: only a
        user of the daemon reads it.
        """
        for message in messages:
            messages_rows.move(
                tx, message.message_id, "failed", "failed", error.message, error.code
            )
            messages_rows.drop_files(tx, message.message_id)
        first = messages[0]
        place = ChatPlace(first.connector, first.conversation, first.thread)
        self.post(
            tx,
            place,
            f"I cannot take that: {texts.problem(error, inside=inside)}",
            "told",
            message_id=first.message_id,
            reply_to=first.inbound.native_id,
        )


def defect(error: Exception) -> PalyraError:
    """What is told of an error that nobody foresaw; the log says the rest."""
    return PalyraError(
        f"something in me failed on it ({type(error).__name__}): my log says more; send it again,"
        " or tell my owner"
    )
