"""One run, told to an editor from where the editor stands to the run's end, with the questions that
it asks on the way.

The rule: an editor's answer is one of those that may come, and the first one counts, wherever it
was given.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from acp import schema
from acp.exceptions import RequestError

from palyra.cli import lookup
from palyra.cli.chat.watcher import Item
from palyra.client import Client
from palyra.client.http import LinkState, StopSignal, decode
from palyra.client.types.sessions import Session
from palyra.core import events
from palyra.core.errors import Conflict, PalyraError
from palyra.core.events import (
    AgentAnswered,
    ApprovalRequested,
    ApprovalResolved,
    Decision,
    Entry,
    GrantScope,
    ModelDelta,
    RunCancelled,
    RunCompleted,
    RunFailed,
)
from palyra.features.acp.updates import Editor, End, Updates, asked_of, refusal

# How long a daemon that went away may take to come back.
_PATIENCE_S = 5.0
_ELSEWHERE = (
    "; too long to be shown whole here: approve it in the console, or with `palyra approvals show`"
)
# Our decision and how far it reaches, by the option that an editor gives back.
_DECISIONS: dict[str, tuple[Decision, GrantScope]] = {
    "allow": ("allow", "once"),
    "session": ("allow", "session"),
    "always": ("allow", "always"),
    "deny": ("deny", "once"),
    "happened": ("happened", "once"),
    "again": ("again", "once"),
    "skip": ("skip", "once"),
}


class Following:
    """One run, from where an editor stands to the run's end."""

    def __init__(self, editor: Editor, session: Session, run_id: str) -> None:
        self._editor = editor
        self._session = session
        self.run_id = run_id
        self._updates = Updates(session.workspace)
        self._asking: dict[str, asyncio.Task[Any]] = {}
        self._submitted = self._cancelled = False

    async def to_the_end(
        self,
        after: int,
        submit: Callable[[Client], None] | None = None,
        *,
        asked_before: bool = False,
    ) -> End:
        """Listen first, then ask: so no word of the answer can be missed. `asked_before`: questions
        may be waiting already.
        """
        items: asyncio.Queue[Item] = asyncio.Queue()
        stopped, loop = StopSignal(), asyncio.get_running_loop()

        def put(item: Item) -> None:
            try:
                loop.call_soon_threadsafe(items.put_nowait, item)
            except RuntimeError:
                stopped.stop()  # The loop has ended.

        def watch() -> None:
            try:
                for message in lookup.watch(
                    self._editor.api(),
                    self._session.session_id,
                    after,
                    stopped,
                    patience_s=_PATIENCE_S,
                ):
                    item = decode(message)
                    if item is not None:
                        put(item)
            except PalyraError as error:
                put(error)

        threading.Thread(target=watch, daemon=True).start()
        try:
            if asked_before:
                await self._ask_pending()
            while True:
                item = await items.get()
                if isinstance(item, PalyraError):
                    error = refusal(item)
                    advice = (
                        "what was begun goes on when the daemon runs again; load the session to"
                        " see it"
                    )
                    raise RequestError(
                        error.code, f"{item.message}; {advice}", error.data
                    ) from item
                if isinstance(item, LinkState) and item.state == "up":
                    self._updates.reply.connected()
                    if submit is not None and not self._submitted:
                        await self._submit(submit)
                end = await self._take(item)
                await self._editor.send(self._session.session_id, self._updates)
                if end is not None:
                    return end
        finally:
            stopped.stop()
            for task in self._asking.values():
                task.cancel()

    async def _submit(self, submit: Callable[[Client], None]) -> None:
        # What was submitted and lost on the way is submitted again when the link is up: the id is
        # the same.
        await self._editor.call(submit)
        self._submitted = True
        self._updates.reply.started(self.run_id)
        if self._cancelled:
            await self.cancel()

    async def _take(self, item: Item) -> End | None:
        if isinstance(item, ModelDelta) and item.run_id == self.run_id:
            self._updates.live(item)
        if not isinstance(item, Entry) or item.run_id != self.run_id:
            return None
        self._updates.entry(item)
        request = asked_of(item)
        if request is not None:
            self._ask(request)
        match events.decode(item.event):
            case (
                ApprovalResolved(approval_id=answered)
                | AgentAnswered(answer=ApprovalResolved(approval_id=answered))
            ):
                # Wherever it was answered: the editor's own question is settled.
                asking = self._asking.pop(answered, None)
                if asking is not None:
                    asking.cancel()
            case RunCompleted() | RunFailed() | RunCancelled() as end:
                return end
        return None

    async def cancel(self) -> None:
        self._cancelled = True
        if self._submitted or self.run_id:
            try:
                await self._editor.call(
                    lambda api: api.cancel(self.run_id, reason="cancelled in the editor")
                )
            except RequestError:
                return  # It is not there yet, and is cancelled when it is; or it has ended.

    async def _ask_pending(self) -> None:
        for approval in await self._editor.call(lookup.pending):
            if approval.run_id == self.run_id:
                self._ask(approval.request)

    def _ask(self, request: ApprovalRequested) -> None:
        if request.approval_id not in self._asking:
            self._asking[request.approval_id] = self._editor.start(self._asked(request))

    async def _asked(self, request: ApprovalRequested) -> None:
        whole = self._updates.shows_all(request.preview)
        shown = schema.ToolCallUpdate(
            tool_call_id=request.call_id or request.approval_id,
            title=(
                f"{request.tool or request.about}: {request.why} (risk"
                f" {request.risk}){'' if whole else _ELSEWHERE}"
            ),
            status="pending",
            content=self._updates.preview(request.preview),
        )
        session_id = self._session.session_id
        ask = self._editor.connection.request_permission
        answer = await ask(
            session_id=session_id, tool_call=shown, options=_options(request, whole=whole)
        )
        chosen = getattr(answer.outcome, "option_id", "")
        if chosen not in _DECISIONS:
            return  # Nothing was decided: it can still be answered, here or elsewhere.
        decision, scope = _DECISIONS[chosen]
        try:
            await asyncio.to_thread(
                lambda: self._editor.api().answer(
                    request.approval_id, decision=decision, scope=scope
                )
            )
        except Conflict:
            return  # Somebody else was first.
        except PalyraError as error:
            await self._editor.note(session_id, f"the answer did not count: {error.message}")


def _options(request: ApprovalRequested, *, whole: bool) -> list[schema.PermissionOption]:
    """`whole`: the editor shows all of what would run. What it does not show whole cannot be
    allowed in it.
    """
    option = schema.PermissionOption
    if not whole and request.about != "in_doubt":
        return [option(option_id="deny", name="Reject", kind="reject_once")]
    if request.about == "in_doubt":
        return [
            option(option_id="happened", name="It happened", kind="allow_once"),
            option(option_id="again", name="Do it again", kind="allow_once"),
            option(option_id="skip", name="Leave it", kind="reject_once"),
        ]
    wider = []
    if request.about == "tool" and request.subjects:
        subject = request.subjects[0]
        about = f"{subject.tool} {subject.value}".strip()
        wider = [
            option(option_id="session", name=f"Allow {about} in this session", kind="allow_always"),
            option(option_id="always", name=f"Always allow {about}", kind="allow_always"),
        ]
    return [
        option(option_id="allow", name="Allow", kind="allow_once"),
        *wider,
        option(option_id="deny", name="Reject", kind="reject_once"),
    ]
