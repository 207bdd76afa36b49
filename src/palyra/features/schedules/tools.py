"""`schedule.create`, `schedule.list` and `schedule.cancel`: what the agent may do about what
happens later.

The rule: a schedule that the agent makes has no permissions of its own; whatever its runs want to
do is asked as ever.

Schedules for the tools: in the name of a call's principal, working where its session does,
without permissions of their own.
"""

from collections.abc import Sequence
from typing import Annotated, Protocol

from msgspec import Meta, Struct

from palyra.core import ids, labels
from palyra.core.errors import NotFound
from palyra.core.ids import OWNER
from palyra.core.labels import CLEAN, Label
from palyra.core.ports import CallContext
from palyra.core.tools import Limits, Preview, ToolResult
from palyra.features.schedules.model import FileTrigger, HookTrigger
from palyra.features.schedules.service import NewSchedule, Schedules, ShownSchedule
from palyra.store import tape
from palyra.store.database import Database, Tx
from palyra.tools.catalogue import Arguments, Placeless, TypedTool, declare

_LIMITS = Limits(time_ms=30_000, input_bytes=64 << 10, output_bytes=64 << 10)


class Planned(Struct, frozen=True):
    schedule_id: str
    name: str
    when: str
    state: str
    upcoming: tuple[str, ...] = ()
    label: Label = CLEAN


class Planner(Protocol):
    """Schedules as the tools need them, in the name of the call's principal."""

    def look_ahead(self, when: str, text: str) -> Planned:
        """Preview the schedule; raises InvalidInput for a time that makes no sense."""
        ...

    async def create(self, context: CallContext, when: str, text: str, name: str) -> Planned: ...

    async def listing(self, context: CallContext) -> Sequence[Planned]: ...

    async def cancel(self, context: CallContext, schedule_id: str) -> Planned: ...


class CreateArguments(Arguments, frozen=True, kw_only=True):
    when: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=200,
            description="`every 2h`, `weekdays at 8:30`, `in 20m`, `at 2027-01-31 09:00` or cron",
        ),
    ]
    text: Annotated[
        str, Meta(min_length=1, max_length=8_000, description="The request to yourself")
    ]
    name: Annotated[str, Meta(max_length=100)] = ""


class ListSchedulesArguments(Arguments, frozen=True, kw_only=True):
    pass


class CancelArguments(Arguments, frozen=True, kw_only=True):
    id: Annotated[str, Meta(min_length=26, max_length=26)]


class _ScheduleTool(Placeless):
    def __init__(self, planner: Planner) -> None:
        self._planner = planner


class ScheduleCreate(_ScheduleTool):
    argument_type = CreateArguments
    # What is said later, in the owner's name, is a message; the same call in doubt makes the same
    # schedule.
    spec = declare(
        "schedule.create",
        "Have a request made later or regularly.",
        CreateArguments,
        effect="idempotent",
        capabilities=("message",),
        limits=_LIMITS,
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, CreateArguments)
        planned = self._planner.look_ahead(arguments.when, arguments.text)
        times = "\n".join(f"  {each}" for each in planned.upcoming) or "  not by the clock"
        return Preview(
            "text",
            f"schedule: {arguments.when}",
            f"{arguments.text}\n\n{planned.when}, next times:\n{times}",
        )

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, CreateArguments)
        made = await self._planner.create(context, arguments.when, arguments.text, arguments.name)
        return ToolResult(
            outcome="ok",
            text=_line(made),
            data={"id": made.schedule_id, "upcoming": list(made.upcoming)},
        )


class ListSchedules(_ScheduleTool):
    argument_type = ListSchedulesArguments
    spec = declare(
        "schedule.list", "List schedules.", ListSchedulesArguments, effect="pure", limits=_LIMITS
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        return Preview("text", "list schedules")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        found = await self._planner.listing(context)
        lines = "\n".join(map(_line, found))
        return ToolResult(
            outcome="ok",
            text=lines or "there are no schedules",
            data={"schedules": [each.schedule_id for each in found]},
            # A name is what the run that made the schedule had read.
            label=labels.join(each.label for each in found),
        )


class ScheduleCancel(_ScheduleTool):
    argument_type = CancelArguments
    spec = declare(
        "schedule.cancel",
        "Remove a schedule.",
        CancelArguments,
        effect="idempotent",
        capabilities=("message",),
        limits=_LIMITS,
    )

    def preview(self, arguments: object, workspace: str) -> Preview:
        assert isinstance(arguments, CancelArguments)
        return Preview("text", f"remove schedule {arguments.id}")

    async def execute(self, arguments: object, context: CallContext) -> ToolResult:
        assert isinstance(arguments, CancelArguments)
        gone = await self._planner.cancel(context, arguments.id)
        return ToolResult(
            outcome="ok",
            text=f"removed: {gone.name}",
            data={"id": gone.schedule_id},
            label=gone.label,
        )


def _line(planned: Planned) -> str:
    following = f"; next {planned.upcoming[0]}" if planned.upcoming else ""
    return f"{planned.schedule_id}  {planned.name}: {planned.when} ({planned.state}){following}"


def tools(planner: Planner) -> tuple[TypedTool, ...]:
    return (ScheduleCreate(planner), ListSchedules(planner), ScheduleCancel(planner))


class SchedulePlanner:
    def __init__(self, db: Database, schedules: Schedules) -> None:
        self._db = db
        self._schedules = schedules

    def look_ahead(self, when: str, text: str) -> Planned:
        return _planned(self._schedules.look_ahead(OWNER, NewSchedule(text=text, when=when)))

    async def create(self, context: CallContext, when: str, text: str, name: str) -> Planned:
        new = NewSchedule(text=text, when=when, name=name, workspace=context.workspace)
        # The same call gives the same schedule, however often it is made.
        schedule_id = ids.derive(0, "call", context.key or context.call_id)
        shown = self._schedules.look_ahead(context.principal, new)
        if isinstance(shown.schedule.trigger, HookTrigger | FileTrigger):
            raise NotFound(
                "a webhook or a watched file is set up by a person: `palyra schedule add`"
            )
        label = await self._db.read(lambda tx: _label(tx, context))
        return _planned(await self._schedules.add(context.principal, new, schedule_id, label=label))

    async def listing(self, context: CallContext) -> Sequence[Planned]:
        return [_planned(each) for each in await self._schedules.listing(context.principal)]

    async def cancel(self, context: CallContext, schedule_id: str) -> Planned:
        shown = await self._schedules.show(context.principal, schedule_id)
        await self._schedules.remove(context.principal, schedule_id)
        return _planned(shown)


def _label(tx: Tx, context: CallContext) -> Label:
    """Return the call's label. Without a record of that, nothing is known to be trusted."""
    asked = tape.proposal(tx, context.run_id, context.call_id).asked
    return asked.label if asked is not None else labels.untrusted("unknown")


def _planned(shown: ShownSchedule) -> Planned:
    schedule = shown.schedule
    return Planned(
        schedule.schedule_id,
        schedule.name,
        shown.when,
        schedule.state,
        shown.upcoming_shown,
        schedule.label,
    )
