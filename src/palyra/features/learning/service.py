"""Learning as verbs: reflect, list, show, accept, reject, roll back.

The rule: the journal decides. An answer about memory and its effect are one step; where files
follow, the answer is durable first, and what a crash left in between is finished at the next start.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from palyra.core.errors import ConfigInvalid, Forbidden, InvalidInput, PalyraError, Unavailable
from palyra.features.learning import apply, model, rows
from palyra.features.learning.apply import Permits, Procedures
from palyra.features.learning.model import (
    LONGEST_CONTENT,
    Candidate,
    CandidateKind,
    CandidateState,
    LearningSettings,
)
from palyra.features.learning.reflection import Reflected, Reflecting
from palyra.features.memory.model import Where
from palyra.features.memory.service import Memory
from palyra.store import runs, sessions
from palyra.store.database import Database, Tx

log = logging.getLogger("palyra.learning")

T = TypeVar("T")
_LONGEST_REASON = 500


class ShownCandidate(Struct, frozen=True, kw_only=True):
    """A candidate with what accepting it would do, in words and as a difference; `problem`: why it
    could not be done.

    `moves` are those that a person has now.
    """

    candidate: Candidate
    would: str
    diff: str = ""
    problem: str = ""
    moves: tuple[str, ...] = ()


class CandidateList(Struct, frozen=True, kw_only=True):
    """`next` is the `before` of the page behind this one; empty: this was the last. `counts` are of
    all there are, by state.
    """

    candidates: list[Candidate]
    counts: dict[str, int]
    next: str = ""


class Learning:
    def __init__(
        self,
        db: Database,
        memory: Memory,
        reflecting: Reflecting,
        procedures: Procedures,
        permits: Permits,
        settings: LearningSettings,
    ) -> None:
        self._db = db
        self._memory = memory
        self._reflecting = reflecting
        self._procedures = procedures
        self._permits = permits
        self.settings = settings
        self._turn = asyncio.Lock()

    def use(self, settings: LearningSettings) -> None:
        """Use other settings from now on; who reads stays until the next start."""
        self.settings = msgspec.structs.replace(settings, model=self.settings.model)
        self._reflecting.use(settings)

    async def listing(
        self,
        principal: str,
        states: Sequence[CandidateState],
        kinds: Sequence[CandidateKind] = (),
        before: str = "",
        limit: int = 100,
    ) -> CandidateList:
        def query(tx: Tx) -> tuple[list[Candidate], dict[str, int]]:
            return rows.listing(tx, principal, states, kinds, before, limit), rows.counts(
                tx, principal
            )

        found, counts = await self._db.read(query)
        return CandidateList(
            candidates=found,
            counts=counts,
            next=found[-1].candidate_id if len(found) == limit else "",
        )

    async def show(self, principal: str, candidate_id: str) -> ShownCandidate:
        candidate = await self._db.read(lambda tx: rows.get(tx, principal, candidate_id))
        moves = tuple(
            each
            for each in model.TABLE[candidate.state]
            if each in ("accept", "reject", "roll_back")
        )
        match candidate.kind:
            case "fact" | "preference":
                would = "remember it"
                if candidate.conflicts_with:
                    would = f"remember it in the place of {candidate.conflicts_with}"
                if candidate.kind == "preference":
                    would += ", and tell it to the agent every time"
                return ShownCandidate(candidate=candidate, would=would, moves=moves)
            case "procedure":
                would = (
                    f"install the skill {apply.skill_name(candidate)}, quarantined until you trust"
                    " it, with its runs as tests"
                )
                diff = "".join(f"+{line}\n" for line in apply.skill_text(candidate).splitlines())
                return ShownCandidate(candidate=candidate, would=would, diff=diff, moves=moves)
            case "policy":
                would = f"add {apply.file_name(candidate)} to the folder of policies"
                diff, problem = self._permits.diff(candidate), self._permits.problem(candidate)
                return ShownCandidate(
                    candidate=candidate, would=would, diff=diff, problem=problem, moves=moves
                )

    async def reflect(self, principal: str, run_id: str) -> Reflected:
        """Read one run now, whether it was read before or not."""

        def query(tx: Tx) -> tuple[str, sessions.Session]:
            run = runs.get(tx, run_id, principal)
            return run.state, sessions.get(tx, run.session_id, principal)

        state, session = await self._db.read(query)
        if state != "done":
            raise InvalidInput(
                f"run {run_id} is {state}: only a run that is done can be reflected on",
                run_id=run_id,
            )
        return await self._reflecting.session(session, run_id)

    async def accept(
        self, principal: str, candidate_id: str, text: str = "", *, governs: bool = True
    ) -> Candidate:
        """Do it. `text` says a fact or a preference in other words. `governs`: the one who answers
        may change policies.
        """
        if len(text) > LONGEST_CONTENT:
            raise InvalidInput(
                f"a candidate has at most {LONGEST_CONTENT} characters", limit=LONGEST_CONTENT
            )
        return await self._whole(
            self._accept(principal, candidate_id, " ".join(text.split()), governs)
        )

    async def _accept(
        self, principal: str, candidate_id: str, text: str, governs: bool
    ) -> Candidate:
        async with self._turn:
            candidate = await self._db.read(lambda tx: rows.get(tx, principal, candidate_id))
            self._check(candidate, governs)
            if candidate.kind in ("fact", "preference"):
                return await self._memory.within(
                    partial(self._remember, principal=principal, wanted=candidate_id, text=text)
                )
            if text:
                raise InvalidInput(
                    f"a {candidate.kind} is accepted as it is: only facts and preferences can be"
                    " put in other words"
                )
            if problem := self._permits.problem(candidate) if candidate.kind == "policy" else "":
                raise ConfigInvalid(f"this policy cannot be accepted: {problem}")

            def step(tx: Tx) -> Candidate:
                return rows.settle(
                    tx, rows.get(tx, principal, candidate_id), "accept", principal, doing="apply"
                )

            return await self._finish(await self._db.write(step), principal)

    def _remember(self, tx: Tx, principal: str, wanted: str, text: str) -> Candidate:
        """Accept and apply in one step: a crash leaves both or neither."""
        candidate = rows.get(tx, principal, wanted)
        accepted = rows.settle(tx, candidate, "accept", principal, reworded=text)
        item = apply.item_of(self._memory, accepted, _where(tx, accepted), by_a_person=True)
        effect = apply.remember(tx, accepted, item)
        return rows.settle(
            tx,
            accepted,
            "apply",
            principal,
            "" if effect.memory_id else "known already",
            effect=effect,
        )

    async def reject(self, principal: str, candidate_id: str, reason: str = "") -> Candidate:
        def step(tx: Tx) -> Candidate:
            candidate = rows.get(tx, principal, candidate_id)
            return rows.settle(tx, candidate, "reject", principal, reason[:_LONGEST_REASON])

        return await self._whole(self._db.write(step))

    async def roll_back(
        self, principal: str, candidate_id: str, *, governs: bool = True
    ) -> Candidate:
        """Take back what was applied. The next prompt and the next decision know nothing of it."""
        return await self._whole(self._roll_back(principal, candidate_id, governs))

    async def _roll_back(self, principal: str, candidate_id: str, governs: bool) -> Candidate:
        async with self._turn:
            candidate = await self._db.read(lambda tx: rows.get(tx, principal, candidate_id))
            self._check(candidate, governs)
            if candidate.kind in ("fact", "preference"):
                return await self._memory.within(
                    partial(_forget, principal=principal, wanted=candidate_id)
                )

            def step(tx: Tx) -> Candidate:
                now = rows.get(tx, principal, candidate_id)
                model.move(now.state, "roll_back", candidate_id)
                return rows.note(tx, now, doing="roll_back")

            return await self._finish(await self._db.write(step), principal)

    def _check(self, candidate: Candidate, governs: bool) -> None:
        if candidate.kind == "policy" and not governs:
            raise Forbidden(
                "policies are the owner's: answer this with the owner's token",
                candidate_id=candidate.candidate_id,
            )

    async def recover(self) -> None:
        """Finish what a crash left between the answer and the files."""
        for candidate in await self._db.read(rows.unfinished):
            try:
                await self._finish(candidate, candidate.owner)
            except PalyraError as error:
                log.error(
                    "candidate %s could not be finished: %s", candidate.candidate_id, error.message
                )

    async def _finish(self, candidate: Candidate, by: str) -> Candidate:
        """Bring the files into line with the answer, and say so. If that cannot be, it waits again,
        or stays applied.
        """
        files = self._procedures if candidate.kind == "procedure" else self._permits
        try:
            if candidate.doing == "apply":
                effect = await files.apply(candidate, by)
                return await self._db.write(
                    lambda tx: rows.settle(tx, candidate, "apply", by, doing="", effect=effect)
                )
            await files.roll_back(candidate, by)
            return await self._db.write(
                lambda tx: rows.settle(tx, candidate, "roll_back", by, doing="")
            )
        except OSError as error:
            await self._give_up(candidate, by, str(error))
            raise Unavailable(
                f"it could not be done ({error}): free the disk or check the folder, and answer"
                " again"
            ) from error
        except Unavailable:
            # The daemon stops, or its disk is full: the next start goes on.
            raise
        except PalyraError as error:
            await self._give_up(candidate, by, error.message)
            raise

    async def _give_up(self, candidate: Candidate, by: str, why: str) -> None:
        def step(tx: Tx) -> None:
            if candidate.doing == "apply":
                rows.settle(tx, candidate, "fail", by, why[:_LONGEST_REASON], doing="")
            else:
                rows.note(tx, candidate, doing="")

        await self._db.write(step)

    async def _whole(self, change: Awaitable[T]) -> T:
        """Finish a change, also if its caller is gone."""
        return await asyncio.shield(asyncio.ensure_future(change))


def _forget(tx: Tx, principal: str, wanted: str) -> Candidate:
    candidate = rows.get(tx, principal, wanted)
    rolled_back = rows.settle(tx, candidate, "roll_back", principal)
    apply.forget(tx, candidate)
    return rolled_back


def _where(tx: Tx, candidate: Candidate) -> Where:
    session = sessions.find(tx, session_id=candidate.session_id) if candidate.session_id else None
    if session is None:
        return Where(principal=candidate.owner)
    return Where(
        principal=candidate.owner,
        channel=session.channel,
        session=session.session_id,
        workspace=session.workspace,
    )
