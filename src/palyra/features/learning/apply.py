"""Applying an accepted candidate, and rolling it back: an item of memory, a quarantined skill, a
file of policies.

The rule: everything here can be done twice. A crash in between is finished at the next start, and
what is rolled back is gone from where the next prompt or the next decision would look.

From findings to candidates, in one step: known ones are strengthened, conflicts seen, thresholds
held, the sure ones applied.

The rule: nothing is applied without review unless the owner said it, above the threshold, without a
conflict, and memory itself would take it without review.
"""

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from palyra.core import labels
from palyra.core.errors import ConfigInvalid, Conflict, NotFound, PalyraError
from palyra.core.ids import SYSTEM
from palyra.features.learning import model, procedures, rows, rules
from palyra.features.learning.model import (
    MOST_CANDIDATES,
    Candidate,
    Effect,
    LearningFinding,
    Thresholds,
)
from palyra.features.memory import words
from palyra.features.memory.model import Item, NewMemory, ScopeKind, Where
from palyra.features.memory.rows import index, items
from palyra.features.memory.rows import search as rows_search
from palyra.features.memory.rows.items import On
from palyra.features.memory.service import Memory, Origin
from palyra.features.skills import package
from palyra.features.skills.registry import SkillRegistry
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay import service
from palyra.policy import store
from palyra.policy.store import PolicyStore
from palyra.store.database import Database, Tx
from palyra.system.thread_pool import everyday

_NO_SLUG = re.compile(r"[^a-z0-9]+")
_OF_PROJECT = re.compile(
    r"^(?:in|for)?\s*this\s+(?:project|repo|repository|codebase|workspace)\b", re.IGNORECASE
)
_LONGEST_SLUG = 30
_HEADING = (
    "// Learned from what you approved again and again. Roll it back with `palyra learn rollback"
    " {id}`, or delete this file.\n"
)


def item_of(memory_verbs: Memory, candidate: Candidate, where: Where, *, by_a_person: bool) -> Item:
    """Return what would be remembered. What a person accepted holds; what nobody reviewed may come
    back as needing review.
    """
    scope: ScopeKind = "principal"
    if where.channel:
        scope = "channel"
    elif where.workspace and _OF_PROJECT.search(candidate.content):
        scope = "workspace"
    new = NewMemory(
        text=candidate.content,
        kind=candidate.memory_kind,
        scope=scope,
        confidence_bps=candidate.confidence_bps,
        pinned=candidate.kind == "preference",
    )
    positions = (candidate.position, *(each.position for each in candidate.evidence))
    item = memory_verbs.prepared(
        where, new, Origin("learned", candidate.label, tuple(each for each in positions if each))
    )
    return msgspec.structs.replace(item, state="active", why="") if by_a_person else item


def remember(tx: Tx, candidate: Candidate, item: Item) -> Effect:
    """Remember it, in the step that says it was applied. What is known already stays as it is, and
    is not this candidate's to undo.
    """
    on = On(candidate.owner)
    if items.known(tx, item) is not None:
        return Effect()
    old = _active(tx, candidate.owner, candidate.conflicts_with)
    if old is not None:
        items.correct(tx, on, old, item)
        return Effect(memory_id=item.memory_id, replaced=old.memory_id)
    items.add(tx, on, [item])
    return Effect(memory_id=item.memory_id)


def forget(tx: Tx, candidate: Candidate) -> None:
    """Forget it, in the step that says it was rolled back. What a person changed or removed since
    is theirs.
    """
    on, effect = On(candidate.owner), candidate.effect
    item = _found(tx, candidate.owner, effect.memory_id)
    if item is None or item.state not in ("active", "review"):
        return
    items.settle(tx, on, item, "forgotten", "learned, and rolled back")
    old = _found(tx, candidate.owner, effect.replaced)
    if old is not None and old.state == "superseded" and old.superseded_by == item.memory_id:
        items.reinstate(tx, on, old)


def _active(tx: Tx, owner: str, memory_id: str) -> Item | None:
    item = _found(tx, owner, memory_id)
    return item if item is not None and item.state == "active" else None


def _found(tx: Tx, owner: str, memory_id: str) -> Item | None:
    if not memory_id:
        return None
    try:
        return items.get(tx, owner, memory_id)
    except NotFound:
        return None


class Procedures:
    """A procedure as a skill that nobody vouches for yet, and the runs it comes from as its
    regression tests.

    The runs lie beside the skill, not in it: they are private, and a skill can be given away.
    """

    def __init__(self, db: Database, shelf: SkillRegistry, tests: Path) -> None:
        self._db = db
        self._shelf = shelf
        self._tests = tests

    def tests_of(self, candidate: Candidate) -> Path:
        return self._tests / skill_name(candidate)

    async def apply(self, candidate: Candidate, by: str) -> Effect:
        name = skill_name(candidate)
        await self._keep_runs(candidate)
        archive = package.to_zip({"SKILL.md": skill_text(candidate).encode()})
        proposal = await self._shelf.look(archive, generated=True)
        if name not in [each.record.name for each in await self._shelf.listing()]:
            await self._shelf.install(by, archive, proposal.digest, generated=True)
        return Effect(skill=name, file=str(self.tests_of(candidate)) if candidate.runs else "")

    async def _keep_runs(self, candidate: Candidate) -> None:
        """A run that cannot be kept is left out: the tape may have been archived."""
        folder = self.tests_of(candidate)
        for run_id in candidate.runs[-2:]:
            try:
                read = partial(recordings.read, wanted=run_id, principal=candidate.owner)
                recording = await self._db.read(read)
                await everyday.run(service.keep, recording, folder)
            except (Conflict, NotFound):
                continue

    async def roll_back(self, candidate: Candidate, by: str) -> None:
        name = candidate.effect.skill or skill_name(candidate)
        if name in [each.record.name for each in await self._shelf.listing()]:
            await self._shelf.remove(by, name)
        await everyday.run(_remove, self.tests_of(candidate))


def skill_name(candidate: Candidate) -> str:
    slug = (
        _NO_SLUG.sub("-", candidate.content.partition(":")[0].casefold())
        .strip("-")[:_LONGEST_SLUG]
        .strip("-")
    )
    return f"learned-{slug or 'procedure'}-{candidate.candidate_id[-6:].casefold()}"


def skill_text(candidate: Candidate) -> str:
    """SKILL.md: what it is for, and the steps."""
    task = candidate.content.partition(":")[0]
    shown = "".join(char for char in task if char.isprintable())
    description = msgspec.json.encode(
        f"Steps that worked {len(candidate.runs)} times for: {shown}"
    ).decode()
    steps = "\n".join(
        f"{number}. {procedures.worded(step)}" for number, step in enumerate(candidate.steps, 1)
    )
    return (
        f"---\nname: {skill_name(candidate)}\ndescription: {description}\n---\n# {shown}\n\nThese"
        f" calls succeeded in this order; `{procedures.OPEN}` is what was different each"
        f" time.\n\n{steps}\n\nLearned as candidate {candidate.candidate_id}.\n"
    )


def _remove(folder: Path) -> None:
    if folder.is_dir():
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()


class Permits:
    """A permit as a file of its own in the folder of policies: validated before, written whole,
    removed whole.
    """

    def __init__(self, db: Database, policy: PolicyStore, folder: Path) -> None:
        self._db = db
        self._policy = policy
        self._folder = folder

    def diff(self, candidate: Candidate) -> str:
        """Return what accepting would change in the folder of policies."""
        import difflib

        file = file_name(candidate)
        lines = policy_text(candidate).splitlines(keepends=True)
        return "".join(difflib.unified_diff([], lines, "/dev/null", file))

    def problem(self, candidate: Candidate) -> str:
        """Return why the policies would not load with it; empty: they would."""
        if candidate.state == "applied":
            return ""
        try:
            self._policy.current.plus(file_name(candidate), policy_text(candidate))
        except PalyraError as error:
            return error.message
        return ""

    async def apply(self, candidate: Candidate, by: str) -> Effect:
        file = file_name(candidate)
        await everyday.run(_write, self._folder / file, policy_text(candidate))
        await self._reload(by)
        return Effect(file=file)

    async def roll_back(self, candidate: Candidate, by: str) -> None:
        path = self._folder / file_name(candidate)
        await everyday.run(_take_away, path, policy_text(candidate))
        await self._reload(by)

    async def _reload(self, by: str) -> None:
        change = await everyday.run(self._policy.reload)
        if change.added or change.removed or change.changed or change.problems:
            await store.record(self._db, by, change)
        if change.problems:
            raise ConfigInvalid(
                "the folder of policies has problems, so the last good set stays in force: see"
                " `palyra policy check`",
                problems=[str(problem) for problem in change.problems],
            )


def file_name(candidate: Candidate) -> str:
    return f"learned-{candidate.candidate_id.casefold()}.cedar"


def policy_text(candidate: Candidate) -> str:
    named = candidate.cedar.replace(
        '@id("learned")', f'@id("learned-{candidate.candidate_id.casefold()}")', 1
    )
    return _HEADING.format(id=candidate.candidate_id) + named


def _write(path: Path, text: str) -> None:
    """Write all of it or nothing; a half-written file has no name that is read as policies."""
    fresh = path.with_name(f".{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(descriptor)
    os.replace(fresh, path)
    _sync(path.parent)


def _take_away(path: Path, text: str) -> None:
    try:
        if path.read_text("utf-8") != text:
            raise Conflict(
                f"{path.name} was changed by hand: look at it, and remove it yourself",
                file=path.name,
            )
    except FileNotFoundError:
        return
    os.unlink(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# How many of the items that are nearest by their words are looked at for the same or the opposite.
_MOST_COMPARED = 20
_REPEATED_BPS = 800
_MOST_BPS = 9_900


class ComparedFinding(NamedTuple):
    """A finding with the item of memory that says otherwise, if one does."""

    finding: LearningFinding
    conflicts_with: str = ""


def best(findings: Sequence[LearningFinding]) -> list[LearningFinding]:
    """Return what one reflection may keep, the surest first; of several about the same the last."""
    last = {(each.kind, each.about or each.content): each for each in findings}
    return sorted(last.values(), key=lambda each: -each.confidence_bps)[:MOST_CANDIDATES]


def compare(tx: Tx, where: Where, finding: LearningFinding) -> ComparedFinding | None:
    """Look a finding up in what is remembered; None if that says the same. A search takes its time:
    this is for a reader.
    """
    partitions = index.visible(tx, where) if _remembers(finding) else []
    if not partitions:
        return ComparedFinding(finding)
    key = words.same_key(finding.content)
    other = ""
    for each in rows_search.search(tx, partitions, finding.content, _MOST_COMPARED):
        if words.same_key(each.item.text) == key:
            return None
        if not other and finding.about and rules.about(each.item.text) == finding.about:
            other = each.item.memory_id
    return ComparedFinding(finding, other)


def _remembers(finding: LearningFinding) -> bool:
    return finding.kind in ("fact", "preference")


class CandidateWriter:
    """One step's work. `item_of` says what would be remembered, `new_id` names what is new."""

    def __init__(
        self,
        tx: Tx,
        where: Where,
        thresholds: Thresholds,
        item_of: Callable[[Candidate], Item],
        new_id: Callable[[], str],
        run_id: str = "",
    ) -> None:
        self._tx = tx
        self._where = where
        self._thresholds = thresholds
        self._item_of = item_of
        self._new_id = new_id
        self._run_id = run_id

    def keep(self, compared: Sequence[ComparedFinding]) -> list[Candidate]:
        """The candidates that these findings are or became."""
        return [
            kept
            for each in compared
            if (kept := self._one(each.finding, each.conflicts_with)) is not None
        ]

    def _one(self, finding: LearningFinding, conflicts_with: str) -> Candidate | None:
        known = rows.same(self._tx, self._where.principal, finding)
        if known is not None:
            return self._again(known, finding)
        candidate = rows.propose(self._tx, self._candidate(finding, conflicts_with))
        for older in (
            rows.about_same(self._tx, candidate.owner, finding) if _remembers(finding) else ()
        ):
            if older.candidate_id != candidate.candidate_id:
                rows.settle(
                    self._tx,
                    older,
                    "conflict",
                    SYSTEM,
                    f"something else was said later: {candidate.candidate_id}",
                )
        return self._settled(candidate, finding)

    def _settled(self, candidate: Candidate, finding: LearningFinding) -> Candidate:
        """The first move of a candidate, and all that follows from it at once."""
        tx = self._tx
        move = model.first_move(finding, self._thresholds)
        if move == "suppress":
            return rows.settle(tx, candidate, "suppress", SYSTEM, "not sure enough to ask")
        if candidate.conflicts_with:
            return rows.settle(
                tx,
                candidate,
                "conflict",
                SYSTEM,
                f"memory {candidate.conflicts_with} says otherwise",
            )
        if move == "hold":
            return rows.settle(tx, candidate, "hold", SYSTEM, _why_held(finding, self._thresholds))
        item = self._item_of(candidate)
        if item.state != "active":
            return rows.settle(tx, candidate, "hold", SYSTEM, item.why)
        accepted = rows.settle(
            tx, candidate, "accept", SYSTEM, "sure enough to be applied at once", automatic=True
        )
        effect = remember(tx, accepted, item)
        return rows.settle(
            tx, accepted, "apply", SYSTEM, "sure enough to be applied at once", effect=effect
        )

    def _again(self, known: Candidate, finding: LearningFinding) -> Candidate | None:
        """Strengthen a known candidate: more evidence makes it surer, once for each entry. A
        person's rejection stands.
        """
        seen = {(each.session_id, each.seq) for each in known.evidence}
        fresh = [each for each in finding.evidence if (each.session_id, each.seq) not in seen]
        if not fresh or known.state in ("applied", "accepted", "rejected", "rolled_back"):
            return None
        bps = max(known.confidence_bps, finding.confidence_bps)
        stronger = msgspec.structs.replace(
            known,
            evidence=model.more_evidence(known.evidence, finding.evidence),
            runs=tuple(dict.fromkeys((*known.runs, *finding.runs))),
            label=labels.join([known.label, finding.label]),
            confidence_bps=(
                bps
                if finding.kind in ("procedure", "policy")
                else min(_MOST_BPS, bps + _REPEATED_BPS)
            ),
        )
        stronger = rows.propose(self._tx, stronger)
        if (
            stronger.state == "suppressed"
            and stronger.confidence_bps >= self._thresholds.of(stronger.kind).review_bps
        ):
            return rows.settle(self._tx, stronger, "hold", SYSTEM, "said more than once")
        return stronger

    def _candidate(self, finding: LearningFinding, conflicts_with: str) -> Candidate:
        return Candidate(
            candidate_id=self._new_id(),
            owner=self._where.principal,
            session_id=self._where.session,
            run_id=self._run_id,
            kind=finding.kind,
            content=finding.content,
            confidence_bps=finding.confidence_bps,
            risk=finding.risk,
            label=finding.label,
            evidence=model.more_evidence((), finding.evidence),
            memory_kind=finding.memory_kind,
            about=finding.about,
            steps=finding.steps,
            runs=finding.runs,
            cedar=finding.cedar,
            found_by=finding.found_by,
            conflicts_with=conflicts_with,
            created_ms=self._tx.now_ms,
        )


def _why_held(finding: LearningFinding, thresholds: Thresholds) -> str:
    if finding.label.integrity == "untrusted":
        return "comes from untrusted content: " + (
            ", ".join(finding.label.sources) or "source unknown"
        )
    if finding.kind in ("procedure", "policy"):
        return f"a {finding.kind} is never applied by itself"
    if finding.risk == "high":
        return "looks like an instruction to the agent"
    if finding.risk == "medium":
        return "a program sent it: nobody is known to have typed it"
    if not finding.addressed:
        return 'only what begins with words like "remember that …" is applied without a review'
    return (
        ""
        if finding.confidence_bps < thresholds.of(finding.kind).auto_bps
        else "applying by itself is off in the config"
    )
