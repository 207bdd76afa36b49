"""`plan`: a model says what it is going to do before it reads what strangers wrote. What is in the
plan then needs no further question. The daemon records it; the tool itself does nothing.
"""

from typing import Annotated

from msgspec import Meta, Struct

from palyra.core import plans
from palyra.core.call_values import MOST_CALLS
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, ToolResult
from palyra.tools.catalogue import Arguments, Placeless, declare


class PlanLine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    tool: Annotated[str, Meta(min_length=1, max_length=160, description="Name of the tool")]
    times: Annotated[int, Meta(ge=1, le=MOST_CALLS)] = 1
    on: Annotated[str, Meta(max_length=200, description="To whom or what")] = ""


class PlanArguments(Arguments, frozen=True, kw_only=True):
    calls: Annotated[tuple[PlanLine, ...], Meta(min_length=1, max_length=plans.MOST_LINES)]


class DeclarePlan(Placeless):
    argument_type = PlanArguments
    spec = declare(
        plans.TOOL,
        "Before you read mails, pages or other people's text: list the calls that the user's"
        " request needs which send, change, pay or delete. Planned calls ask less.",
        PlanArguments,
        effect="pure",
        limits=Limits(time_ms=5_000, input_bytes=16 << 10, output_bytes=4 << 10),
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, PlanArguments)
        return Preview("text", f"plan: {self._words(arguments)}")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, PlanArguments)
        return ToolResult(outcome="ok", text=f"planned: {self._words(arguments)}")

    def _words(self, arguments: PlanArguments) -> str:
        return plans.words(
            [plans.PlannedCall(each.tool, each.times, each.on) for each in arguments.calls]
        )
