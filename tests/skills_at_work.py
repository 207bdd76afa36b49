"""How the tests make, install and call skills: real files, the real runtime, modules written in
WebAssembly's text format.
"""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

from palyra.core.tools import ToolResult
from palyra.features.skills import tools
from palyra.features.skills.host import World
from palyra.features.skills.records import Record
from palyra.features.skills.store import Skills
from palyra.features.skills.tools import SkillTool
from palyra.tools.paths import PathGuard
from tests.tools_at_work import context

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "skills"
# What every module needs: a memory, and an allocator that always gives the same place.
MEMORY = '(memory (export "memory") 2) (func (export "alloc") (param i32) (result i32) (i32.const 65536))'
IMPORTS = {
    "log": "(param i32 i32)",
    "take": "(param i32 i32) (result i32)",
    "read_file": "(param i32 i32) (result i32)",
    "write_file": "(param i32 i32 i32 i32) (result i32)",
    "http": "(param i32 i32) (result i32)",
    "secret": "(param i32 i32) (result i32)",
}


def module(
    call: str, *, imports: tuple[str, ...] = (), more: str = "", memory: str = MEMORY
) -> str:
    """A module whose `call` has this body; parameters are $at and $size, and it must leave an
    i64.
    """
    imported = " ".join(
        f'(import "host" "{name}" (func ${name} {IMPORTS[name]}))' for name in imports
    )
    return f'(module {imported} {memory} {more} (func (export "call") (param $at i32) (param $size i32) (result i64) {call}))'


def packed(at: int, size: int) -> str:
    return f"(i64.const {at << 32 | size})"


def answering(text: str, *, imports: tuple[str, ...] = (), before: str = "") -> str:
    """A module that answers with this JSON, after doing something else."""
    return module(
        f"{before} {packed(1024, len(text.encode()))}", imports=imports, more=data(1024, text)
    )


def data(at: int, text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return f'(data (i32.const {at}) "' + "".join(f"\\{byte:02x}" for byte in raw) + '")'


ECHO = module(
    "(i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32)) (i64.extend_i32_u (local.get $size)))"
)


def asking(name: str, given: str, *, then: str = "", others: tuple[str, ...] = ()) -> str:
    """A module that calls a host function with one text and answers with what it leaves, or with
    the code as a number.
    """
    return module(
        f"""(local $n i32)
        (local.set $n (call ${name} (i32.const 0) (i32.const {len(given.encode())}))) {then}
        (if (i32.eq (local.get $n) (i32.const -1)) (then (return {packed(60000, 9)})))
        (if (i32.lt_s (local.get $n) (i32.const 0)) (then (return {packed(60016, 8)})))
        (drop (call $take (i32.const 65536) (local.get $n)))
        (i64.or (i64.const {65536 << 32}) (i64.extend_i32_u (local.get $n)))""",
        imports=(name, "take", *others),
        more=data(0, given) + data(60000, '"refused"') + data(60016, '"failed"'),
    )


def make(folder: Path, wat: str | bytes, *, name: str = "subject", **entry: Any) -> Path:
    """A skill with one tool `run`, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: For a test.\n---\nDo what the test says.\n"
    )
    (folder / "run.wat").write_bytes(wat.encode() if isinstance(wat, str) else wat)
    wants, limits = entry.pop("wants", {}), entry.pop("limits", {})
    lines = ["[[tools]]", *(f"{key} = {json.dumps(value)}" for key, value in _entry(entry).items())]
    lines += ["[tools.wants]", *(f"{key} = {json.dumps(value)}" for key, value in wants.items())]
    lines += ["[tools.limits]", *(f"{key} = {json.dumps(value)}" for key, value in limits.items())]
    (folder / "skill.toml").write_text("\n".join(lines) + "\n")
    return folder


def _entry(more: dict[str, Any]) -> dict[str, Any]:
    return {"name": "run", "description": "Runs.", "module": "run.wat", "effect": "pure", **more}


def installed(skills: Skills, source: Path, *, state: Any = "enabled") -> Record:
    """Installed and confirmed, as a person would."""
    record = skills.install(source, confirm=skills.look(source).digest)
    assert isinstance(record, Record)
    return skills.set_state(record.name, state) if state else record


def tool(folder: Path, wat: str | bytes, world: World | None = None, **entry: Any) -> SkillTool:
    """The tool of a new skill with this module, installed below `folder`."""
    source = make(folder / "source", wat, **entry)
    skills = Skills(folder / "skills")
    record = installed(skills, source)
    shutil.rmtree(source)
    (only,) = tools.tools_of(skills, skills.get(record.name), world or World(PathGuard()))
    return only


def run(subject: SkillTool, workspace: Path, arguments: dict[str, Any] | None = None) -> ToolResult:
    async def main() -> ToolResult:
        return await asyncio.wait_for(
            subject.execute(subject.parse(arguments or {})[0], context(workspace)), 30
        )

    return asyncio.run(main())


def outcome(folder: Path, wat: str | bytes, world: World | None = None, **entry: Any) -> ToolResult:
    """What calling such a module gives, in the workspace `folder/ws`."""
    workspace = folder / "ws"
    workspace.mkdir(exist_ok=True)
    return run(tool(folder, wat, world, **entry), workspace)
