"""`agent.spawn`: gives a task to a subagent, a run of its own in a session of its own.

The rule: starting one changes nothing by itself. Whatever it does is judged call by call, as its
own. The call is idempotent: its id is the subagent's run id, so that starting it again finds the
one that is there.
"""

from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from palyra.core.events import Budgets
from palyra.core.next_step import SPAWN
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, ToolResult
from palyra.tools.catalogue import Arguments, Placeless, TypedTool, declare

_MINUTE_MS = 60_000


class SpawnArguments(Arguments, frozen=True, kw_only=True):
    task: Annotated[str, Meta(min_length=1, max_length=32_000)]
    tools: tuple[Annotated[str, Meta(max_length=128)], ...] = ()
    model: Annotated[str, Meta(max_length=128)] = ""
    turns: Annotated[int, Meta(ge=0, le=1_000)] = 0
    calls: Annotated[int, Meta(ge=0, le=10_000)] = 0
    minutes: Annotated[int, Meta(ge=0, le=1_440)] = 0

    @property
    def budgets(self) -> Budgets:
        """Return the budgets that were asked for; 0 where there was none."""
        return Budgets(self.turns, self.calls, self.minutes * _MINUTE_MS)


class AgentSpawn(Placeless):
    argument_type = SpawnArguments
    # What it may take beside the task is named and not described: it is sent with every request,
    # and rarely used.
    spec = replace(
        declare(
            SPAWN,
            "Give a self-contained task to a subagent; also takes tools, model (a name, or summary,"
            " extraction, vision), turns, calls, minutes.",
            SpawnArguments,
            effect="idempotent",
            limits=Limits(input_bytes=64 << 10),
        ),
        parameters={
            "type": "object",
            "properties": {"task": {"type": "string"}},
            "required": ["task"],
        },
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, SpawnArguments)
        return Preview(
            "text",
            f"a subagent with {', '.join(arguments.tools) or 'the same tools'}",
            arguments.task,
        )

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        """Runs start subagents themselves, in the step that waits for them."""
        return ToolResult(outcome="error", text="a subagent can only be started by a run")


def tools() -> tuple[TypedTool, ...]:
    return (AgentSpawn(),)
