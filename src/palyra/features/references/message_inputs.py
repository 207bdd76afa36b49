"""What a message brings with it beyond its words: what it names, and what is attached."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from palyra.core.events import Attachment, Reference
from palyra.core.labels import CLEAN, Label, merge
from palyra.core.verdicts import Origin
from palyra.features.references.attachments import Attaching, Attachments
from palyra.features.references.service import ReferenceBody, References
from palyra.store import artifacts
from palyra.store.database import Tx


class Enclosed(Struct, frozen=True):
    """For the tape, and the bytes that are stored in the same step."""

    references: tuple[Reference, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    bodies: tuple[ReferenceBody, ...] = ()

    def store(self, tx: Tx, session_id: str) -> None:
        for body in self.bodies:
            artifacts.keep_artifact(tx, session_id, body.data, body.media_type)


NOTHING = Enclosed()


def labelled(enclosed: Enclosed, label: Label) -> Enclosed:
    """The same, with a label added to what is attached."""
    if label == CLEAN or not enclosed.attachments:
        return enclosed
    attached = tuple(replace(each, label=merge(each.label, label)) for each in enclosed.attachments)
    return replace(enclosed, attachments=attached)


@dataclass(frozen=True)
class Enclosures:
    references: References
    attachments: Attachments

    async def of(
        self,
        principal: str,
        session_id: str,
        text: str,
        attaching: Sequence[Attaching],
        origin: Origin,
    ) -> Enclosed:
        """Everything, or the error that says what is missing; nothing is stored yet."""
        named: tuple[Reference, ...] = ()
        texts: list[ReferenceBody] = []
        if "@" in text:
            named, texts = await self.references.resolve(principal, session_id, text, origin)
        attached, more = (
            await self.attachments.of(principal, session_id, attaching) if attaching else ((), [])
        )
        return Enclosed(named, attached, (*texts, *more)) if named or attached else NOTHING
