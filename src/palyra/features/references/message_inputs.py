"""Inputs of a message beyond its words: what it names, and what is attached."""

from collections.abc import Sequence
from dataclasses import dataclass

from palyra.agent.message_inputs import NOTHING, Attaching, Enclosed, ReferenceBody
from palyra.core.events import Reference
from palyra.core.verdicts import Origin
from palyra.features.references.attachments import Attachments
from palyra.features.references.service import References


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
        """Return everything, or raise the error for what is missing; nothing is stored yet."""
        named: tuple[Reference, ...] = ()
        texts: list[ReferenceBody] = []
        if "@" in text:
            named, texts = await self.references.resolve(principal, session_id, text, origin)
        attached, more = (
            await self.attachments.of(principal, session_id, attaching) if attaching else ((), [])
        )
        return Enclosed(named, attached, (*texts, *more)) if named or attached else NOTHING
