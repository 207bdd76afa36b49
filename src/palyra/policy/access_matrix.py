"""Who can do what: every tool, judged in a few plain situations for one principal. It asks the
policies as a call would.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from palyra.core.labels import CLEAN, Label, private, untrusted
from palyra.core.tools import Capability, Scope, ToolSpec
from palyra.core.verdicts import Question, Verdict, Word, word

_ELSEWHERE = "/srv/elsewhere/example.txt"
_HOST = "example.org"
_FILES: frozenset[Capability] = frozenset({"fs.read", "fs.write"})
_LABELS = {"untrusted": untrusted(f"web:{_HOST}"), "private": private("file:notes.txt")}
_OUT: frozenset[Capability] = frozenset({"network", "browser", "message"})


class Situation(Struct, frozen=True):
    id: str
    words: str


class Cell(Struct, frozen=True):
    """`word` is empty where the situation makes no sense for the tool."""

    word: Word | None
    reason: str = ""
    policies: tuple[str, ...] = ()


class ToolRow(Struct, frozen=True):
    """`cells` are in the order of the situations."""

    tool: str
    effect: str
    capabilities: tuple[str, ...]
    source: str
    cells: tuple[Cell, ...]


SITUATIONS = (
    Situation("plain", "as usual"),
    Situation("elsewhere", "outside the workspace"),
    Situation("untrusted", "after reading something from outside"),
    Situation("private", "with private data read before"),
)


class PolicyQuestion(Protocol):
    """The question that whoever is asked about would bring up."""

    def __call__(self, *, tool: ToolSpec, scope: Scope, label: Label) -> Question: ...


def table(
    judge: Callable[[Question], Verdict],
    tools: Sequence[ToolSpec],
    workspace: str,
    question: PolicyQuestion,
) -> list[ToolRow]:
    return [
        _row(judge, tool, workspace, question) for tool in sorted(tools, key=lambda each: each.name)
    ]


def _row(
    judge: Callable[[Question], Verdict], tool: ToolSpec, workspace: str, question: PolicyQuestion
) -> ToolRow:
    cells = []
    for situation in SITUATIONS:
        if not _makes_sense(situation.id, tool):
            cells.append(Cell(None))
            continue
        scope = _scope(tool, workspace, outside=situation.id == "elsewhere")
        verdict = judge(question(tool=tool, scope=scope, label=_LABELS.get(situation.id, CLEAN)))
        cells.append(Cell(word(verdict), verdict.reason, verdict.policies))
    return ToolRow(tool.name, tool.effect, tool.capabilities, tool.source, tuple(cells))


def _makes_sense(situation: str, tool: ToolSpec) -> bool:
    match situation:
        case "elsewhere":
            return not _FILES.isdisjoint(tool.capabilities)
        case "private":
            return not _OUT.isdisjoint(tool.capabilities)
        case _:
            return True


def _scope(tool: ToolSpec, workspace: str, *, outside: bool) -> Scope:
    """An ordinary call: one file, one command, one host, as far as the tool has to do with such
    things.
    """
    files, process = not _FILES.isdisjoint(tool.capabilities), "process" in tool.capabilities
    path = _ELSEWHERE if outside else f"{workspace.rstrip('/')}/example.txt"
    return Scope(
        paths=(path,) if files else (workspace,) if process else (),
        workspace=workspace,
        program="example" if process else "",
        command="example" if process else "",
        hosts=() if {"network", "browser"}.isdisjoint(tool.capabilities) else (_HOST,),
        recipients=("somebody",) if "message" in tool.capabilities else (),
    )
