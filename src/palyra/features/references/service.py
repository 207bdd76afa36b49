"""References of a message, resolved when it comes: each read under policy, labelled and bounded, or
an error that says why.

The rule: what the model is shown is on the tape with the input, as it was then. A reference that
leads nowhere keeps the whole message from being taken, so that nobody waits for an answer to a
question with a hole in it.
"""

import asyncio
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from palyra.agent.direct_tools import DirectCallContext, Failed
from palyra.agent.message_inputs import ReferenceBody
from palyra.agent.session_cache import SessionCache
from palyra.core import labels, references
from palyra.core.errors import Forbidden, InvalidInput, NotFound, PalyraError, Unavailable
from palyra.core.events import Reference, ReferenceKind
from palyra.core.labels import CLEAN, Label
from palyra.core.references import LIMITS, MOST, MOST_CHARACTERS, NamedReference
from palyra.core.verdicts import Origin
from palyra.features.references.kinds import READ_ON, Kinds, Whole, cut_at
from palyra.models import token_count
from palyra.store import sessions
from palyra.store.database import Database
from palyra.system import thread_pool
from palyra.system.redactor import Redactor

TEXT = "text/plain; charset=utf-8"
# What is kept of something that is shown in part.
MOST_KEPT = 256 << 10
_LEAST_ROOM = 400


class ResolvedReference(Struct, frozen=True, kw_only=True):
    """One reference after looking: what goes on the tape, or why nothing does."""

    named: NamedReference
    reference: Reference | None = None
    body: ReferenceBody | None = None
    warnings: tuple[str, ...] = ()
    error: str = ""
    policies: tuple[str, ...] = ()


class PreviewedReference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`size` is of the whole, in `unit`; `characters` and `tokens` are of what the model would be
    shown. `error`: why it fails.
    """

    reference: str
    kind: ReferenceKind
    target: str = ""
    size: int = 0
    unit: str = "characters"
    characters: int = 0
    tokens: int = 0
    truncated: bool = False
    label: Label = CLEAN
    warnings: tuple[str, ...] = ()
    error: str = ""
    policies: tuple[str, ...] = ()


class ReferencesPreview(Struct, frozen=True, kw_only=True):
    """`errors` are about the message as a whole. With an error anywhere the message would be
    refused.
    """

    references: tuple[PreviewedReference, ...]
    characters: int
    tokens: int
    errors: tuple[str, ...] = ()


class References:
    def __init__(self, db: Database, lives: SessionCache, kinds: Kinds, redactor: Redactor) -> None:
        self._db = db
        self._lives = lives
        self.kinds = kinds
        self._redactor = redactor

    async def resolve(
        self, principal: str, session_id: str, text: str, origin: Origin
    ) -> tuple[tuple[Reference, ...], list[ReferenceBody]]:
        """Return what a message names, and what is to be stored with it. Raises InvalidInput that
        says of each failure what and why.
        """
        # What another agent wrote is not a person's naming: there an at-sign is an at-sign.
        named = references.parse(text) if origin != "child" else ()
        if not named:
            return (), []
        if len(named) > MOST:
            raise InvalidInput(_too_many(len(named)), limit=MOST)
        found = await self._look(principal, session_id, named, origin)
        failed = [each for each in found if each.error]
        if failed:
            told = [
                {
                    "reference": self._spelt(each.named),
                    "kind": each.named.kind,
                    "why": each.error,
                    "policies": each.policies,
                }
                for each in failed
            ]
            said = "; ".join(f"{self._spelt(each.named)}: {each.error}" for each in failed[:3])
            raise InvalidInput(f"{said}; nothing was sent", references=told)
        return tuple(each.reference for each in found if each.reference), [
            each.body for each in found if each.body
        ]

    async def preview(self, principal: str, session_id: str, text: str) -> ReferencesPreview:
        """Return what resolving would give, now. Nothing is stored."""
        named = references.parse(text)
        errors = (_too_many(len(named)),) if len(named) > MOST else ()
        await self._db.read(lambda tx: sessions.get(tx, session_id, principal))
        found = (
            await self._look(principal, session_id, named[:MOST], "interactive") if named else []
        )
        shown = tuple([await self._previewed(each) for each in found])
        return ReferencesPreview(
            references=shown,
            characters=sum(each.characters for each in shown),
            tokens=sum(each.tokens for each in shown),
            errors=errors,
        )

    async def pictures(
        self, principal: str, session_id: str, urls: Sequence[str]
    ) -> list[tuple[bytes, Label]]:
        """Images by their addresses, each fetched under policy by the tool that a model would use.
        All of them, or an error.
        """
        at = await self._situation(principal, session_id, "api")

        async def one(url: str) -> tuple[bytes, Label]:
            try:
                return await self.kinds.picture(at, url)
            except Unavailable:
                raise
            except PalyraError as error:
                redact = self._redactor.redact
                raise InvalidInput(
                    f"{redact(url[:200])}: {redact(error.message)}; nothing was sent"
                ) from error

        return await asyncio.gather(*(one(url) for url in urls))

    async def names(self, principal: str, session_id: str, prefix: str, most: int) -> list[str]:
        """Paths of the session's workspace that begin so. What may not be looked at has no
        names.
        """
        at = await self._situation(principal, session_id, "interactive")
        try:
            return [
                self._redactor.redact(path) for path in await self.kinds.names(at, prefix, most)
            ]
        except (InvalidInput, Forbidden, NotFound, Failed):
            return []

    async def _previewed(self, found: ResolvedReference) -> PreviewedReference:
        reference = found.reference or Reference(
            kind=found.named.kind, target=self._redactor.redact(found.named.target)
        )
        return PreviewedReference(
            reference=self._spelt(found.named),
            kind=reference.kind,
            target=reference.target,
            size=reference.size,
            unit=reference.unit,
            characters=len(reference.text),
            tokens=(
                await thread_pool.everyday.run(token_count.count, reference.text)
                if reference.text
                else 0
            ),
            truncated=reference.truncated,
            label=reference.label,
            warnings=found.warnings,
            error=found.error,
            policies=found.policies,
        )

    def _spelt(self, named: NamedReference) -> str:
        return self._redactor.redact(named.spelt)

    async def _look(
        self, principal: str, session_id: str, named: Sequence[NamedReference], origin: Origin
    ) -> list[ResolvedReference]:
        """Look each up once, all at the same time; then cut what is too much for one message, the
        last first.
        """
        at = await self._situation(principal, session_id, origin)
        once = {(each.kind, each.target, each.problem): each for each in reversed(named)}
        found = await asyncio.gather(*(self._one(at, each) for each in reversed(once.values())))
        return _within(found)

    async def _situation(
        self, principal: str, session_id: str, origin: Origin
    ) -> DirectCallContext:
        await self._db.read(lambda tx: sessions.get(tx, session_id, principal))
        live = await self._lives.hold(session_id)
        try:
            return DirectCallContext(
                session=live.session, origin=origin, label=live.conversation.label, rules=live.rules
            )
        finally:
            self._lives.release(live)

    async def _one(self, at: DirectCallContext, named: NamedReference) -> ResolvedReference:
        if named.problem:
            return ResolvedReference(named=named, error=named.problem)
        try:
            whole = await self.kinds.find(at, named.kind, named.target)
        except Unavailable:
            raise
        except PalyraError as error:
            policies = tuple(error.details.get("policies", ()))
            return ResolvedReference(
                named=named, error=await self._redactor.redacted(error.message), policies=policies
            )
        # As long as a file may be.
        return await thread_pool.everyday.run(self._found, named, whole)

    def _found(self, named: NamedReference, whole: Whole) -> ResolvedReference:
        redact = self._redactor.redact
        clean = redact(cut_at(whole.text, MOST_KEPT))
        shown = cut_at(clean, LIMITS[named.kind])
        warnings = list(map(redact, whole.warnings))
        truncated = whole.cut or len(shown) < len(clean) or len(whole.text) > MOST_KEPT
        if truncated:
            warnings.append(f"only the first {len(shown):,} characters are shown")
        body = (
            ReferenceBody(clean.encode(), TEXT) if whole.paged and len(shown) < len(clean) else None
        )
        reference = Reference(
            kind=named.kind,
            target=redact(named.target),
            label=labels.renamed(whole.label, redact),
            size=whole.size,
            unit=whole.unit,
            truncated=truncated,
            text=shown,
            artifact=body.artifact if body else None,
            note=redact(whole.note),
        )
        return ResolvedReference(
            named=named, reference=reference, body=body, warnings=tuple(warnings)
        )


def _too_many(count: int) -> str:
    return (
        f"a message may name {MOST} references, and this one names {count}: write @@ for a plain"
        " at-sign; nothing was sent"
    )


def _within(found: Sequence[ResolvedReference]) -> list[ResolvedReference]:
    """Return as many as fit together."""
    left, kept = MOST_CHARACTERS, list[ResolvedReference]()
    for each in found:
        reference = each.reference
        if reference is None:
            kept.append(each)
            continue
        if len(reference.text) > left:
            if left < _LEAST_ROOM:
                error = (
                    f"there is no room left: references may have {MOST_CHARACTERS:,} characters"
                    " in all"
                )
                kept.append(ResolvedReference(named=each.named, error=error))
                continue
            shown = cut_at(reference.text, left)
            body, note = each.body, reference.note or READ_ON
            if body is None and reference.kind not in ("file", "folder"):
                body, note = ReferenceBody(reference.text.encode(), TEXT), reference.note
            artifact = body.artifact if body else None
            reference = msgspec.structs.replace(
                reference, text=shown, truncated=True, artifact=artifact, note=note
            )
            warning = (
                f"only {len(shown):,} characters are shown: references may have {MOST_CHARACTERS:,}"
                " in all"
            )
            each = msgspec.structs.replace(
                each, reference=reference, body=body, warnings=(*each.warnings, warning)
            )
        left -= len(reference.text)
        kept.append(each)
    return kept
