"""Skills as a model meets them: `skill.read` for instructions, and one tool for each WASM tool of a
skill.

The rule: a skill in quarantine is not offered, and what a skill says counts as untrusted until
somebody trusts it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from palyra.core import argument_roles, labels
from palyra.core.argument_roles import ToolUse
from palyra.core.errors import InvalidInput, NotFound
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, Scope, Subject, ToolResult, ToolSpec
from palyra.features.skills import index, manifest, wasm
from palyra.features.skills.host import SkillHost, World
from palyra.features.skills.index import label_of
from palyra.features.skills.manifest import Check, ToolEntry
from palyra.features.skills.store import Listed, Skills
from palyra.tools import blocking
from palyra.tools.catalogue import Arguments, TypedTool, declare

# Compiling may come first, and is not the module's doing.
_SLACK_MS = 20_000
_INPUT_BYTES = 1 << 20
_MOST_READ = 128 << 10
_MOST_LISTED = 500


def tools(skills: Skills, world: World) -> tuple[TypedTool, ...]:
    """The tools of all skills that are offered, `skill.read` first. Blocks on files; build it again
    when skills change.
    """
    offered = [listed for listed in skills.all() if listed.state != "quarantined"]
    if not offered:
        return ()
    return (
        SkillRead(skills),
        *(tool for listed in offered for tool in tools_of(skills, listed, world)),
    )


def tools_of(skills: Skills, listed: Listed, world: World) -> tuple["SkillTool", ...]:
    """The WASM tools of one skill; for the operator this is also how to try one that is in
    quarantine.
    """
    return tuple(SkillTool(skills, listed, entry, world) for entry in skills.entries(listed.record))


class SkillArguments(Arguments, frozen=True, kw_only=True):
    """Arguments that fit the schema in a manifest."""

    values: dict[str, Any]


def _use(skill: str, entry: ToolEntry) -> ToolUse:
    """Return what a tool's arguments are for, as its manifest suggests. Only one that is declared
    pure reads only: the host keeps it to that.
    """
    pure = entry.effect == "pure"
    found = argument_roles.proposed(skill, entry.name, entry.arguments, read_only=pure)
    return msgspec.structs.replace(
        found, reads_only=found.reads_only and pure, trusted_results=False
    )


class SkillTool:
    argument_type = SkillArguments

    def __init__(self, skills: Skills, listed: Listed, entry: ToolEntry, world: World) -> None:
        self._skills, self._record = skills, listed.record
        self._skill = listed.record.name
        self._entry = entry
        self._world = world
        self._check: Check | None = None
        load = partial(_load, skills, listed, entry.module)
        self._program = wasm.Program(load, entry.wants, entry.limits)
        self.spec = ToolSpec(
            name=f"skill:{self._skill}/{entry.name}",
            description=entry.description,
            parameters={"type": "object", **entry.arguments},
            effect=entry.effect,
            capabilities=entry.wants.capabilities,
            limits=Limits(
                entry.limits.time_ms + _SLACK_MS, _INPUT_BYTES, entry.limits.output_bytes
            ),
            tier="A",
            source=f"skill:{self._skill}",
            yields=label_of(listed),
            use=_use(self._skill, entry),
        )

    def parse(self, arguments: Mapping[str, Any]) -> tuple[SkillArguments, dict[str, Any]]:
        """Arguments checked by the manifest's schema, as the catalogue wants them."""
        if self._check is None:
            self._check = manifest.checker(self.spec.name, self.spec.parameters)
        self._check(arguments)
        values = dict(arguments)
        return SkillArguments(values=values), values

    def scope(self, arguments: object, workspace: str) -> Scope:
        """Return everything the tool was granted: a module is free to use any of it, whatever the
        arguments look like.
        """
        wants, fence = self._entry.wants, self._world.fence
        reading = [fence.place(path, workspace) for path in wants.read]
        writing = [fence.place(path, workspace, writing=True) for path in wants.write]
        found = dict.fromkeys(place.absolute for place in (*reading, *writing))
        root = fence.place(".", workspace).absolute if found else workspace
        return Scope(paths=tuple(found), workspace=root, hosts=wants.hosts)

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return (Subject(self.spec.name, "tool"),)

    def preview(self, arguments: object, workspace: str) -> Preview:
        wants = msgspec.to_builtins(self._entry.wants)
        may = [f"may use {kind}: {', '.join(values)}" for kind, values in wants.items()]
        given = msgspec.json.format(msgspec.json.encode(_values(arguments)), indent=2).decode()
        return Preview("text", f"{self.spec.name} (WebAssembly)", "\n".join([*may, given]))

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        given = msgspec.json.encode(_values(arguments))
        if len(given) > _INPUT_BYTES:
            raise InvalidInput(
                f"{self.spec.name}: the arguments have {len(given):,} bytes, the limit is"
                f" {_INPUT_BYTES:,}"
            )
        pure = self.spec.effect == "pure"
        host = SkillHost(
            self._world,
            self._entry.wants,
            context,
            skill=self._skill,
            tool=self.spec.name,
            pure=pure,
        )
        # The catalogue may be older than an operator's "not any more".
        first = partial(self._skills.check_current, self._record)
        output = await self._program.run(given, host, settle=not pure, first=first)
        return self._result(output, host)

    def _result(self, output: wasm.SkillOutput, host: SkillHost) -> ToolResult:
        data: dict[str, Any] = {"fuel": output.fuel}
        if host.changes:
            data["changes"] = [
                {"path": path, "change": change} for path, change in host.changes.items()
            ]
        if output.fault:
            late = host.stopped
            text = (
                f"{self.spec.name} took longer than {self._entry.limits.time_ms:,} ms"
                if late
                else f"{self.spec.name}: {output.fault}"
            )
            return ToolResult(
                outcome="timeout" if late else "error", text=text, data=data, label=host.label
            )
        try:
            value = msgspec.json.decode(output.data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            text = f"{self.spec.name}: its output is not JSON"
            return ToolResult(outcome="error", text=text, data=data, label=host.label)
        match value:
            case {"error": str(message), **rest} if not rest:
                return ToolResult(outcome="error", text=message, data=data, label=host.label)
            case str():
                return ToolResult(outcome="ok", text=value, data=data, label=host.label)
            case _:
                return ToolResult(
                    outcome="ok", text=output.data.decode(), data=data, label=host.label
                )


def _values(arguments: object) -> dict[str, Any]:
    assert isinstance(arguments, SkillArguments)
    return arguments.values


def _load(skills: Skills, listed: Listed, module: str, engine: Any) -> Any:
    return skills.modules.load(engine, skills.read(listed.record, module))


class SkillReadArguments(Arguments, frozen=True, kw_only=True):
    name: Annotated[str, Meta(description="Of the skill; without it, the skills are listed")] = ""
    file: Annotated[str, Meta(description="Another text file of the skill")] = ""


class SkillRead:
    """`skill.read`: a body is loaded when it is asked for. What skills there are stands in the
    prompt.
    """

    argument_type = SkillReadArguments

    def __init__(self, skills: Skills) -> None:
        self._skills = skills
        self.spec = declare(
            "skill.read",
            "Read the instructions of a skill before doing what it is for.",
            SkillReadArguments,
            effect="pure",
            limits=Limits(time_ms=10_000, input_bytes=8 << 10, output_bytes=_MOST_READ),
        )

    def scope(self, arguments: object, workspace: str) -> Scope:
        return Scope(workspace=workspace)

    def subjects(self, scope: Scope) -> tuple[Subject, ...]:
        return (Subject(self.spec.name, "tool"),)

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, SkillReadArguments)
        return Preview("text", f"{self.spec.name} {arguments.name} {arguments.file}".rstrip())

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, SkillReadArguments)
        return await blocking.results_in(lambda stop: self._read(arguments), arguments.name)

    def _read(self, arguments: SkillReadArguments) -> ToolResult:
        if not arguments.name:
            return self._list()
        # Looked up anew, so that a skill that was put in quarantine a moment ago is not read.
        listed = self._skills.get(arguments.name)
        if listed.state == "quarantined":
            raise NotFound(
                f"the skill {arguments.name} is in quarantine: its owner must enable it first"
            )
        record = listed.record
        if arguments.file:
            data = self._skills.read(record, arguments.file)
            if len(data) > _MOST_READ or b"\0" in data[:8192]:
                raise InvalidInput(
                    f"{arguments.file} is not a text of at most {_MOST_READ >> 10} KiB"
                )
            text = data.decode("utf-8", "replace")
        else:
            others = sorted(path for path in record.files if path not in ("SKILL.md", "skill.toml"))
            text = self._skills.instructions(record)[:_MOST_READ]
            text += f"\n\nFiles of this skill: {', '.join(others)}"[:2000] if others else ""
        return ToolResult(outcome="ok", text=text, label=label_of(listed))

    def _list(self) -> ToolResult:
        offered = [listed for listed in self._skills.all() if listed.state != "quarantined"][
            :_MOST_LISTED
        ]
        lines = [f"- {each.record.name}: {index.short(each)}" for each in offered]
        return ToolResult(
            outcome="ok",
            text="\n".join(lines) or "there are no skills",
            label=labels.join(map(label_of, offered)),
        )
