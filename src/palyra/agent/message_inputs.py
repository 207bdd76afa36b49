"""Inputs of a message beyond its words: what it names, and what is attached.

The kernel knows how such things are stored with a message; a feature knows how they are found.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Annotated, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from palyra.core.errors import InvalidInput
from palyra.core.events import Attachment, Reference
from palyra.core.ids import ArtifactId
from palyra.core.labels import CLEAN, Label, merge
from palyra.core.verdicts import Origin
from palyra.store import artifacts
from palyra.store.database import Tx

LONGEST_NAME = 200


class Attaching(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A file of the session that goes with a message, by the id that storing it gave."""

    artifact: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    name: Annotated[str, Meta(max_length=LONGEST_NAME)] = ""


class ReferenceBody(Struct, frozen=True):
    """Bytes to be stored with the input that names them."""

    data: bytes
    media_type: str

    @property
    def artifact(self) -> ArtifactId:
        return ArtifactId(sha256(self.data).hexdigest())


class Enclosed(Struct, frozen=True):
    """References and attachments for the tape, and the bytes that are stored in the same step."""

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


class MessageInputs(Protocol):
    """Finder of what a message names and what is attached to it."""

    async def of(
        self,
        principal: str,
        session_id: str,
        text: str,
        attaching: Sequence[Attaching],
        origin: Origin,
    ) -> Enclosed:
        """Return everything, or raise the error that says what is missing; store nothing."""


class NoMessageInputs:
    """A daemon without references and attachments: words are words."""

    async def of(
        self,
        principal: str,
        session_id: str,
        text: str,
        attaching: Sequence[Attaching],
        origin: Origin,
    ) -> Enclosed:
        if attaching:
            raise InvalidInput("this daemon takes no attachments: send the text alone")
        return NOTHING
