"""The verbs of the daemon: submit, watch, cancel, stop, and what follows from them. Every transport
calls these and nothing below.

A run belongs to the daemon, not to a connection: submitting is one durable step, and watching is
reading on from a cursor.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from palyra.agent import long_messages, value_origins
from palyra.agent import stop as agent_stop
from palyra.agent.approvals import ApprovalService
from palyra.agent.broadcast import Broadcast
from palyra.agent.labelled_files import FileLabels
from palyra.agent.message_inputs import NOTHING, Enclosed, MessageInputs, labelled
from palyra.agent.provider_wait import ProviderWaits
from palyra.agent.runs import Runs
from palyra.agent.session_cache import SessionCache
from palyra.agent.settings import Settings
from palyra.agent.submit import PLAIN, InputOrigin, Submission, SubmitStep, Submitted
from palyra.core import ids
from palyra.core.call_options import NOTHING as NO_OPTIONS
from palyra.core.call_options import CallOptions
from palyra.core.call_values import CallValues
from palyra.core.conversation import Conversation
from palyra.core.errors import InvalidInput, Unavailable
from palyra.core.events import (
    ApprovalRequested,
    StateChanged,
    Topic,
    encode,
)
from palyra.core.labels import CLEAN, Label, merge
from palyra.core.signals import Signal
from palyra.core.tools import Scope, ToolSpec
from palyra.core.verdicts import Origin
from palyra.models.routing import Models
from palyra.store import runs, sessions, tape
from palyra.store.database import Appended, Database, Tx
from palyra.store.runs import RunRow
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor

log = logging.getLogger("palyra.gateway")

LONGEST_TEXT = 256 << 10
_LONGEST_REASON = 2_000
_PAGE = 500
# Of a run that does not work: nobody is in a hurry to be told that the disk does not answer.
_LONGEST_READ_S = 5.0


class Stopped(Struct, frozen=True):
    """`cancelled`: the runs whose work was broken off. `recorded`: whether their ends are on their
    tapes by now.

    If not, the disk is slow or refuses; they are recorded as soon as it takes them.
    """

    cancelled: tuple[str, ...]
    recorded: bool = True


class Gateway:
    def __init__(
        self,
        db: Database,
        hub: Broadcast,
        lives: SessionCache,
        runs_: Runs,
        answers: ApprovalService,
        models: Models,
        redactor: Redactor,
        clock: Clock,
        settings: Settings,
        enclosures: MessageInputs,
        waits: ProviderWaits,
        files: FileLabels,
    ) -> None:
        self._db = db
        self._files = files
        self.waits = waits
        self._enclosures = enclosures
        self._hub = hub
        self._lives = lives
        self._runs = runs_
        self._answers = answers
        self._models = models
        self._redactor = redactor
        self._clock = clock
        self._settings = settings
        # Told of everything that was committed, before whoever waits for it.
        self.on_commit = Signal[[list[Appended]]]("a commit")
        db.on_commit.connect(self._committed)
        db.on_touched.connect(hub.changed)

    def _committed(self, appended: list[Appended]) -> None:
        self.on_commit.send(appended)
        self._lives.on_commit(appended)
        self.waits.on_commit(appended)
        self._runs.on_commit(appended)
        self._hub.publish(appended)
        for entry in appended:
            if isinstance(entry.event, ApprovalRequested):
                self._answers.expires(entry.event.expires_ms)
            elif entry.kind == "admin.changed":
                self._hub.changed(("settings",))

    async def start(self) -> list[RunRow]:
        """Go on where the last process stopped."""
        await self._answers.start()
        await self.waits.start()
        recovered = await self._runs.recover()
        self.waits.go_on()
        return recovered

    async def close(self) -> None:
        self._answers.close()
        self.waits.close()
        await self._runs.close()

    async def submit(
        self,
        principal: str,
        session_id: str,
        submission: Submission,
        *,
        origin: Origin = "interactive",
        schedule_id: str = "",
        brought: Label = CLEAN,
        said: InputOrigin | None = None,
    ) -> Submitted:
        """Take an input. When this returns it is durable, and a run answers it whatever becomes of
        the caller.

        `schedule_id`: a schedule says it. `brought`: the label of what is attached, beyond what is
        known of it. `said`: it comes through a channel.
        """
        if not submission.text.strip():
            raise InvalidInput("the message is empty")
        if len(submission.text.encode()) > LONGEST_TEXT:
            raise InvalidInput(
                f"a message may have {LONGEST_TEXT} bytes: put more into a file and name it",
                limit=LONGEST_TEXT,
            )
        if submission.model:
            self._models.find(submission.model)
            if self._redactor.redact(submission.model) != submission.model:
                raise InvalidInput("the model's name looks like a secret")
        if submission.options != NO_OPTIONS:
            self.check_options(submission.model, submission.options)
        submission_id = (
            ids.check(submission.run_id, "run_id") if submission.run_id else self._clock.new_id()
        )
        text = await self._redactor.redacted(submission.text)
        enclosed = NOTHING
        if "@" in submission.text or submission.attachments:
            enclosed = labelled(
                await self._enclosed(principal, session_id, submission, origin), brought
            )
        target = (
            self._models.find(submission.model) if submission.model else self._models.targets[0]
        )
        text, enclosed = long_messages.shortened(text, enclosed, target.budget)
        # The run that begins needs the conversation: the step reads it along, if it is not in
        # memory.
        expected = self._lives.expect(session_id, submission_id)
        try:
            step = SubmitStep(
                principal,
                session_id,
                submission_id,
                submission,
                text,
                self._settings,
                origin,
                enclosed,
                said=said or PLAIN,
                schedule_id=schedule_id,
                expected=expected,
                offers=self._models.offers,
            )
            submitted = await self._db.write(step)
        finally:
            if expected is not None:
                self._lives.expect_no_more(expected)
        if submitted.outcome == "joined" and submission.mode == "interrupt":
            self._runs.interrupt(submitted.run_id)
        return submitted

    def check_options(
        self, model: str, options: CallOptions, names: Mapping[str, str] | None = None
    ) -> None:
        """Raise InvalidInput for an option that the model cannot be told. `names`: what the caller
        calls them.
        """

        def path(name: str) -> str:
            return (names or {}).get(name, name) if names is not None else f"options.{name}"

        if refused := self._models.refused(model, options):
            name, target = refused
            raise InvalidInput(
                f"{target.name} cannot be told {path(name)}: leave it out, or ask another model",
                path=f"$.{path(name)}",
                model=target.name,
            )
        for name, text in (
            ("service_tier", options.service_tier),
            *(("stop", each) for each in options.stop),
        ):
            if self._redactor.redact(text) != text:
                raise InvalidInput(
                    f"{path(name)} looks like a secret: leave it out", path=f"$.{path(name)}"
                )

    async def _enclosed(
        self, principal: str, session_id: str, submission: Submission, origin: Origin
    ) -> Enclosed:
        """Return what a message names and brings. Sending the same message again reads nothing
        again: it was taken as it was then.
        """
        if (
            submission.run_id
            and await self._db.read(lambda tx: runs.find_submission(tx, submission.run_id))
            is not None
        ):
            return NOTHING
        return await self._enclosures.of(
            principal, session_id, submission.text, submission.attachments, origin
        )

    async def label(self, session_id: str) -> Label:
        """Return the label of all that the session's model has been shown in its conversation."""
        live = await self._lives.hold(session_id)
        try:
            return live.conversation.label
        finally:
            self._lives.release(live)

    async def would_ask(
        self,
        session_id: str,
        spec: ToolSpec,
        arguments: Mapping[str, Any],
        workspace: str,
        scope: Scope,
    ) -> tuple[Label, CallValues]:
        """Return what policy would be told of the session and of the values of such a call, if its
        model proposed it now.
        """
        live = await self._lives.hold(session_id)
        try:
            values = await value_origins.values_in(live, spec, arguments, workspace)
            files = await self._files.given(spec, scope)
            return merge(live.conversation.label, files), values
        finally:
            self._lives.release(live)

    async def watch(
        self,
        principal: str,
        session_id: str,
        after: int,
        look: Callable[[Tx], object] = lambda tx: None,
        glance: Callable[[Conversation], bool] = lambda conversation: True,
    ) -> AsyncIterator[Sequence[tuple[int, bytes]]]:
        """Batches of (seq, wire) behind a cursor, for ever; live events have seq 0. No gap, no
        duplicate, whoever reconnects.

        The first batch comes at once and may be empty. `look` sees the same moment of the store,
        and may refuse by raising; where the session is in memory and `glance` finds there what it
        needs, the store is not asked.
        """
        subscription = self._hub.subscribe(session_id)
        cursor = after
        begun = False
        at_hand: list[tuple[int, bytes]] | None = None
        live = self._lives.peek(session_id)
        if (
            live is not None
            and live.session.owner == principal
            and (recent := live.after(after)) is not None
        ):
            at_hand = recent if glance(live.conversation) else None
            del recent
        # Whoever watches for days must not hold on to what was there when they came.
        del live

        def behind_cursor(tx: Tx) -> list[tape.StoredEntry]:
            if not begun:
                look(tx)
            sessions.get(tx, session_id, principal)
            return tape.after(tx, session_id, cursor, _PAGE)

        try:
            if at_hand is not None:
                begun = True
                yield at_hand
                cursor = at_hand[-1][0] if at_hand else cursor
                del at_hand
            while True:
                if subscription.lagging or not begun:
                    subscription.lagging = False
                    subscription.drop()
                    while (stored := await self._db.read(behind_cursor)) or not begun:
                        begun = True
                        yield [(entry.seq, entry.wire) for entry in stored]
                        cursor = stored[-1].seq if stored else cursor
                        if len(stored) < _PAGE:
                            break
                    del stored
                while not subscription.lagging:
                    batch: list[tuple[int, bytes]] = []
                    for item in await subscription.take():
                        if isinstance(item, bytes):
                            batch.append((0, item))
                        elif item.seq == cursor + 1:
                            cursor = item.seq
                            batch.append((item.seq, item.wire))
                        elif item.seq > cursor:
                            # Something between was dropped: the store has it.
                            subscription.lagging = True
                            break
                    if batch:
                        yield batch
        finally:
            self._hub.unsubscribe(session_id, subscription)

    async def watch_all(
        self, principal: str, after: int, topics: Collection[Topic] = ()
    ) -> AsyncIterator[Sequence[tuple[int, bytes]]]:
        """Batches of (position, wire) over all of a principal's sessions, in commit order; no
        deltas.

        The first batch comes at once and may be empty. That something of `topics` has changed is a
        live event, whose position is 0; it is told from then on only: whoever connects looks for
        themselves.
        """
        subscription = self._hub.subscribe(None, topics)
        cursor = after
        begun, more = False, True
        try:
            while True:
                while more:
                    page = partial(
                        tape.after_position, position=cursor, owner=principal, limit=_PAGE
                    )
                    stored, upto = await self._db.read(page)
                    if stored or not begun:
                        begun = True
                        yield [(entry.position, entry.wire) for entry in stored]
                    cursor = upto
                    more = len(stored) == _PAGE
                    del stored
                subscription.lagging = False
                more = bool(await subscription.take())
                if changed := subscription.changed():
                    yield [(0, encode(StateChanged(what=changed)))]
        finally:
            self._hub.unsubscribe(None, subscription)

    async def run(self, principal: str, run_id: str) -> RunRow:
        ids.check(run_id, "run_id")
        return await self._db.read(lambda tx: runs.get(tx, run_id, principal))

    async def cancel(
        self, principal: str, run_id: str, reason: str = "cancelled by the user"
    ) -> RunRow:
        """End a run in whatever state it is. Cancelling a run that has ended gives the run as it
        is.

        What the run does is broken off first, whatever the disk does; the answer says whether its
        end is recorded.
        """
        ids.check(run_id, "run_id")
        # Cut, not handed to another thread: nothing may keep a STOP waiting.
        reason = self._redactor.redact_head(reason, _LONGEST_REASON)
        struck = self._runs.stopping.strikes(principal, run_id, reason)
        try:
            async with asyncio.timeout(agent_stop.ANSWER_S if struck else _LONGEST_READ_S):
                run = await self.run(principal, run_id)
        except (TimeoutError, Unavailable):
            # Its own task records its end when the store answers again.
            known = self._runs.stopping.as_known(run_id) if struck else None
            if known is None:
                raise Unavailable(
                    "the journal does not answer, and the run does not work now: try again in a"
                    " moment"
                ) from None
            return known
        return await self._runs.stopping.cancel_soon(run, reason)

    async def retry(self, principal: str, run_id: str, model: str = "") -> RunRow:
        """Ask again now for a run that waits for a provider, with another model if one is named."""
        return await self.waits.retry(principal, ids.check(run_id, "run_id"), model)

    async def stop(self, principal: str, reason: str = "STOP") -> Stopped:
        """Cancel everything a principal has running or waiting. A control command: no model sees
        it.

        What works is broken off first; what can be recorded in time is recorded when this returns,
        and the rest afterwards.
        """
        cancelled, recorded = await self._runs.stopping.stop(principal, reason)
        return Stopped(tuple(cancelled), recorded)
