"""Schedules for the tools: in the name of a call's principal, working where its session does,
without permissions of their own.
"""

from collections.abc import Sequence

from palyra.core import labels
from palyra.core.errors import NotFound
from palyra.core.ids import OWNER
from palyra.core.labels import Label
from palyra.core.ports import CallContext
from palyra.features.schedules import steps
from palyra.features.schedules.model import FileTrigger, HookTrigger
from palyra.features.schedules.service import NewSchedule, Schedules, ShownSchedule
from palyra.features.schedules.tools import Planned
from palyra.store import tape
from palyra.store.database import Database, Tx


class SchedulePlanner:
    def __init__(self, db: Database, schedules: Schedules) -> None:
        self._db = db
        self._schedules = schedules

    def look_ahead(self, when: str, text: str) -> Planned:
        return _planned(self._schedules.look_ahead(OWNER, NewSchedule(text=text, when=when)))

    async def create(self, context: CallContext, when: str, text: str, name: str) -> Planned:
        new = NewSchedule(text=text, when=when, name=name, workspace=context.workspace)
        # The same call gives the same schedule, however often it is made.
        schedule_id = steps.derived_id(0, "call", context.key or context.call_id)
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
    """Of what the call was made from. Without a record of that, nothing is known to be trusted."""
    asked = tape.proposal(tx, context.run_id, context.call_id).asked
    return asked.label if asked is not None else labels.untrusted("unknown")


def _planned(shown: ShownSchedule) -> Planned:
    schedule = shown.schedule
    return Planned(
        schedule.schedule_id, schedule.name, shown.when, schedule.state, shown.upcoming_shown
    )
