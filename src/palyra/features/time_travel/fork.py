"""A run taken up again from one of its entries, live, in a branch of its session: with another
model, or under other policies.

The rule: the recorded run stays as it is. The fork begins where a model is asked: a turn that was
cut in two is asked for again.
"""

from msgspec import Struct

from palyra.agent.settings import Settings
from palyra.core import events, ids
from palyra.core.errors import InvalidInput
from palyra.core.events import AnyEvent, ModelReplied, RunAccepted, RunStarted, ToolFinished
from palyra.core.ids import RunId
from palyra.models.routing import Models
from palyra.policy.store import OtherPolicies
from palyra.store import runs, sessions, tape
from palyra.store.database import Database, Tx
from palyra.store.runs import RunRow
from palyra.system import thread_pool
from palyra.system.clock import Clock

_ENDS = ("run.completed", "run.failed", "run.cancelled")


class Fork(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`at` is an entry of the run, 0 for its beginning. `policy` is a folder of policies to be in
    force instead.
    """

    at: int = 0
    model: str = ""
    policy: str = ""


class Forked(Struct, frozen=True, kw_only=True):
    """`at` is the entry it was forked behind: the wanted one, or the one before it at which the
    model was asked.
    """

    run_id: str
    session_id: str
    seq: int
    forked_run_id: str
    forked_session_id: str
    at: int


class Forking:
    def __init__(
        self, db: Database, models: Models, clock: Clock, settings: Settings, others: OtherPolicies
    ) -> None:
        self._db = db
        self._models = models
        self._clock = clock
        self._settings = settings
        self._others = others

    async def fork(self, principal: str, run_id: str, wanted: Fork) -> Forked:
        """Begin the fork. When this returns it is on the tapes, and its run is at work."""
        ids.check(run_id, "run_id")
        if wanted.model:
            self._models.find(wanted.model)
        policy = (
            await thread_pool.everyday.run(self._others.load, wanted.policy)
            if wanted.policy
            else ""
        )
        child_id, new_run = self._clock.new_id(), RunId(self._clock.new_id())

        def step(tx: Tx) -> Forked:
            run = runs.get(tx, run_id, principal)
            parent = sessions.get(tx, run.session_id, principal)
            if (
                policy
                and parent.workspace
                and f"{policy}/".startswith(f"{parent.workspace.rstrip('/')}/")
            ):
                # They are read again after a restart, and until then the run could have written its
                # own.
                raise InvalidInput(
                    "the policies lie in the session's workspace, where the run could change them:"
                    " copy them elsewhere"
                )
            at = _place(_entries(tx, run), wanted.at)
            before = runs.accepted(tx, run_id)
            title = sessions.title_from(f"{parent.title or 'session'} (fork)")
            child = sessions.branch(tx, parent, at, child_id, title)
            accepted = RunAccepted(
                origin=run.origin,
                model=wanted.model or before.model,
                budgets=self._settings.budgets,
                policy=policy,
                forked_run_id=run.run_id,
            )
            entries = tape.append(tx, child_id, principal, [accepted, RunStarted()], new_run)
            return Forked(
                run_id=new_run,
                session_id=child.session_id,
                seq=entries[0].seq - 1,
                forked_run_id=run_id,
                forked_session_id=run.session_id,
                at=at,
            )

        return await self._db.write(step)


def _entries(tx: Tx, run: RunRow) -> list[tuple[int, AnyEvent]]:
    found = tape.of_run(tx, run.session_id, run.run_id)
    return [(seq, events.decode(body)) for seq, body in found]


def _place(entries: list[tuple[int, AnyEvent]], wanted: int) -> int:
    """The last place up to the wanted one at which every call of every reply has its result, and
    the run had begun.
    """
    began = next((seq for seq, event in entries if isinstance(event, RunStarted)), 0)
    first, last = entries[0][0], entries[-1][0]
    if not began:
        raise InvalidInput("this run has not begun: there is nothing to fork")
    if wanted and not first <= wanted <= last:
        raise InvalidInput(
            f"the run has the entries {first} to {last}, not {wanted}", first=first, last=last
        )
    whole, open_calls = began, set[str]()
    for seq, event in entries:
        if seq > max(wanted, began) or events.kind_of(event) in _ENDS:
            break
        match event:
            case ModelReplied(calls=calls):
                # A reply without calls is the answer: there is nothing to ask behind it.
                open_calls = {call.id for call in calls}
                continue
            case ToolFinished(call_id=call_id):
                open_calls.discard(call_id)
                if not open_calls:
                    whole = seq
            case events.InputReceived() if seq > began and not open_calls:
                whole = seq
    return whole
