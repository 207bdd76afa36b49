"""The skills of the running daemon: what is installed is offered, and every change of it is on the
system tape.

The rule: the files are the truth. After each change, and at each start, the catalogue and the index
are made from them anew, and what changed while nobody could write it down is written down then.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from palyra.agent.prompt.sources import EMPTY, Index
from palyra.core.errors import InvalidInput, NotFound, PalyraError
from palyra.core.events import AdminChanged
from palyra.core.ids import SYSTEM, SYSTEM_TAPE
from palyra.features.skills import index
from palyra.features.skills.host import World
from palyra.features.skills.manifest import Permission, ToolEntry
from palyra.features.skills.records import Record, State
from palyra.features.skills.store import Listed, Proposal, Skills, Source
from palyra.features.skills.tools import SkillRead, SkillTool, tools_of
from palyra.store import approvals, tape
from palyra.store.database import Database, Tx
from palyra.system.redactor import Redactor
from palyra.tools import blocking
from palyra.tools.catalogue import Catalogue, TypedTool

log = logging.getLogger("palyra.skills")

T = TypeVar("T")
_GROUP = "skill"
_OTHER_BYTES = frozenset({"updated", "removed"})
# How a skill is called in what is remembered of them.
_SKILL = "skill "
_MOST_SHOWN = 128 << 10
_ACTIONS: dict[State, str] = {
    "quarantined": "quarantined",
    "enabled": "enabled",
    "trusted": "trusted",
}


class ShownSkill(Struct, frozen=True, kw_only=True):
    """Details of one skill. `permissions` are what it was granted, in words."""

    skill: Listed
    permissions: tuple[str, ...]
    tools: tuple[ToolEntry, ...] = ()
    instructions: str = ""


class Publisher(Struct, frozen=True):
    """Publisher whose signed skills are trusted. `key` is an Ed25519 public key in base64."""

    name: str
    key: str


class SkillRegistry:
    def __init__(
        self, db: Database, catalogue: Catalogue, redactor: Redactor, folder: Path, world: World
    ) -> None:
        self._db = db
        self._catalogue = catalogue
        self._redactor = redactor
        self._folder = folder
        self._skills = Skills(folder, seals=db.seals)
        self._world = world
        self._turn = asyncio.Lock()
        # Kept while they stay the same, because they keep what is compiled and loaded.
        self._made: dict[tuple[str, State], tuple[SkillTool, ...]] = {}
        self._index = EMPTY
        self.notes: tuple[str, ...] = ()

    def index(self) -> Index:
        """Return the model's list of skills; the same object as long as nothing changed."""
        return self._index

    async def open(self) -> None:
        """Offer what is installed. Where nothing ever was, nothing is looked at."""
        if not self._folder.is_dir():
            return
        try:
            await self._off(self._skills.sweep)
            if self._db.seals is not None and self._db.seals.adopts:
                await self._off(self._skills.adopt)
            await self._tell_what_nobody_told()
            await self._renew()
        except PalyraError as error:
            # A daemon without its skills is better than none.
            self.notes = (f"no skills are offered: {error.message}",)
            log.error("no skills are offered: %s", error.message)

    async def listing(self) -> list[Listed]:
        return await self._off(self._skills.all)

    async def show(self, name: str) -> ShownSkill:
        return await self._off(lambda: self._shown(self._skills.get(name)))

    async def export(self, name: str) -> bytes:
        return await self._off(lambda: self._skills.export(self._skills.get(name).record))

    async def publishers(self) -> list[Publisher]:
        found = await self._off(self._skills.publishers.all)
        return [Publisher(name, key) for name, key in sorted(found.items())]

    def _shown(self, listed: Listed) -> ShownSkill:
        record = listed.record
        permissions = tuple(each.words for each in record.granted)
        if listed.problem and not record.files:
            return ShownSkill(skill=listed, permissions=permissions)
        try:
            told, tools = (
                self._skills.instructions(record)[:_MOST_SHOWN],
                self._skills.entries(record),
            )
        except PalyraError:
            # `problem` says what is wrong with it.
            told, tools = "", ()
        return ShownSkill(skill=listed, permissions=permissions, tools=tools, instructions=told)

    async def look(self, source: Source, *, generated: bool = False) -> Proposal:
        """Return what installing this would mean. Changes nothing."""
        proposal = await self._off(lambda: self._skills.look(source, generated=generated))
        self._check_name(proposal.name)
        return proposal

    def _check_name(self, name: str) -> None:
        """Raise InvalidInput for a skill that is called like a tool: a model would take the one for
        the other.
        """
        for spec in self._catalogue.specs():
            own = not spec.name.startswith(("mcp:", "skill:"))
            if own and name in (spec.name.replace(".", "-"), spec.name.partition(".")[0]):
                raise InvalidInput(
                    f"a skill cannot be called {name}, like the agent's own tool {spec.name}:"
                    " rename it",
                    name=name,
                )

    async def install(
        self, by: str, source: Source, confirm: str, *, generated: bool = False
    ) -> ShownSkill:
        """Install or update what was confirmed by its digest. What the daemon wrote itself is
        `generated`: nobody vouches.
        """
        if not confirm:
            raise InvalidInput("say what is confirmed: the digest of the proposal")
        before = dict[str, Record]()

        def install() -> Record:
            before.update({each.record.name: each.record for each in self._skills.all()})
            self._check_name(self._skills.look(source, generated=generated).name)
            made = self._skills.install(source, confirm=confirm, generated=generated)
            assert isinstance(made, Record)
            return made

        def told(made: Record) -> AdminChanged:
            old = before.get(made.name)
            details: dict[str, Any] = {
                "digest": made.digest,
                "state": made.state,
                "granted": _words(made.granted),
            }
            if old is not None:
                details |= {"before": old.digest}
            if made.signer:
                details |= {"signer": made.signer}
            return AdminChanged(
                what="skill",
                action="updated" if old else "installed",
                subject=made.name,
                details=details,
            )

        return await self.show((await self._change(by, install, told)).name)

    async def remove(self, by: str, name: str) -> None:
        await self._change(
            by,
            lambda: self._skills.remove(name),
            lambda _: AdminChanged(what="skill", action="removed", subject=name),
        )

    async def set_state(self, by: str, name: str, state: State) -> ShownSkill:
        def told(made: Record) -> AdminChanged:
            return AdminChanged(
                what="skill", action=_ACTIONS[state], subject=name, details={"digest": made.digest}
            )

        await self._change(by, lambda: self._skills.set_state(name, state), told)
        return await self.show(name)

    async def add_publisher(self, by: str, publisher: Publisher) -> None:
        def told(_: None) -> AdminChanged:
            details = {"publisher": publisher.name, "key": publisher.key}
            return AdminChanged(
                what="skill", action="publisher added", subject=publisher.name, details=details
            )

        await self._change(
            by, lambda: self._skills.publishers.add(publisher.name, publisher.key), told
        )

    async def remove_publisher(self, by: str, name: str) -> None:
        def remove() -> None:
            if not self._skills.publishers.remove(name):
                raise NotFound(f"there is no publisher {name[:64]!r}")

        await self._change(
            by,
            remove,
            lambda _: AdminChanged(what="skill", action="publisher removed", subject=name),
        )

    async def _change(self, by: str, do: Callable[[], T], told: Callable[[T], AdminChanged]) -> T:
        """One change after another, each to its end: a caller who leaves does not leave it half
        told.
        """
        return await asyncio.shield(asyncio.ensure_future(self._changed(by, do, told)))

    async def _changed(self, by: str, do: Callable[[], T], told: Callable[[T], AdminChanged]) -> T:
        async with self._turn:
            # First what an earlier change could not tell: after this one nobody would know that it
            # was never told.
            await self._tell_what_nobody_told()
            made = await self._off(do)
            event = told(made)
            await self._tell(
                by, event, other_bytes=(event.subject,) if event.action in _OTHER_BYTES else ()
            )
            await self._off(self._remember)
            await self._renew()
        return made

    async def _renew(self) -> None:
        offered, tools = await self._off(self._offered)
        # In one piece: a model is told of skills and tools that belong together.
        self._catalogue.renew(_GROUP, tools)
        self._index = index.of(offered)

    def _offered(self) -> tuple[list[Listed], tuple[TypedTool, ...]]:
        offered, made = list[Listed](), dict[tuple[str, State], tuple[SkillTool, ...]]()
        for listed in self._skills.all():
            if listed.state == "quarantined":
                continue
            key = (listed.record.folder, listed.state)
            try:
                made[key] = self._made.get(key) or tools_of(self._skills, listed, self._world)
                offered.append(listed)
            except PalyraError as error:
                log.error("the skill %s is not offered: %s", listed.record.name, error.message)
        self._made = made
        read = (SkillRead(self._skills),) if offered else ()
        return offered, (*read, *(tool for tools in made.values() for tool in tools))

    async def _tell(self, by: str, event: AdminChanged, other_bytes: Collection[str]) -> None:
        """Record a change. What was allowed for longer to tools of `other_bytes` was allowed to the
        bytes that were there.
        """
        clean = await self._redactor.redacted_json(event.details)

        def step(tx: Tx) -> None:
            removed = sum(approvals.forget_grants(tx, f"skill:{name}/") for name in other_bytes)
            details = {**clean, "grants_removed": removed} if other_bytes else clean
            tape.append(tx, SYSTEM_TAPE, by, [msgspec.structs.replace(event, details=details)])

        await self._db.write(step)

    async def _tell_what_nobody_told(self) -> None:
        """A crash between a change and its event, or somebody who changed files by hand."""
        before, now = await self._off(lambda: (self._remembered(), self._as_it_is()))
        if before == now:
            return
        details = {
            "was": {
                key: before.get(key, "") for key in now | before if before.get(key) != now.get(key)
            }
        }
        details["is"] = {key: now.get(key, "") for key in details["was"]}
        other = [key.removeprefix(_SKILL) for key in details["was"] if key.startswith(_SKILL)]
        await self._tell(
            SYSTEM,
            AdminChanged(what="skill", action="found changed", details=details),
            other_bytes=other,
        )
        await self._off(self._remember)

    def _as_it_is(self) -> dict[str, str]:
        """Skills and publishers as one line each."""
        found = {
            f"{_SKILL}{each.record.name}": f"{each.record.digest} {each.record.state}"
            for each in self._skills.all()
        }
        return found | {f"publisher {name}": key for name, key in self._known().items()}

    def _known(self) -> dict[str, str]:
        try:
            return self._skills.publishers.all()
        except InvalidInput:
            return {"?": "the list cannot be read"}

    def _remembered(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(
                (self._folder / "told.json").read_bytes(), type=dict[str, str]
            )
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return {}

    def _remember(self) -> None:
        fresh = self._folder / "told.json.new"
        fresh.write_bytes(msgspec.json.encode(self._as_it_is()))
        fresh.replace(self._folder / "told.json")

    async def _off(self, job: Callable[[], T]) -> T:
        """Run it off the event loop, with the system's errors in words."""

        def run() -> T:
            with blocking.family("the skills folder"):
                return job()

        return await asyncio.to_thread(run)


def _words(granted: tuple[Permission, ...]) -> list[str]:
    return [each.words for each in granted]
