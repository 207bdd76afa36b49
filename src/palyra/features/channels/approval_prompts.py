"""Approvals in a chat: put to whoever may answer, where they are; answered by buttons or words; the
first answer wins everywhere.

Who may answer is not decided here: users answer what is theirs and what was handed on to them, the
owner for everybody who comes through a channel, and others only what a policy lets them.
"""

import asyncio
import logging
from collections.abc import Coroutine
from datetime import UTC, datetime
from functools import partial
from typing import Any

from palyra.agent import approval_groups
from palyra.agent.approval_groups import GroupAnswer
from palyra.agent.approval_steps import Answer
from palyra.agent.approvals import ApprovalService
from palyra.core.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from palyra.core.events import AdminChanged, ApprovalRequested, ApprovalResolved
from palyra.core.ids import OWNER, SYSTEM_TAPE, check_principal
from palyra.core.sentences import visible
from palyra.features.channels import texts
from palyra.features.channels.outbox import Posting
from palyra.features.channels.registry import Book, Who
from palyra.features.channels.rows import messages, outbox, people
from palyra.features.channels.rows.messages import StoredMessage
from palyra.features.channels.rows.outbox import AskedApproval
from palyra.features.channels.run_bridge import AwaitedRun
from palyra.features.channels.views import ChatPlace
from palyra.features.notices.service import Notices
from palyra.store import approvals, tape
from palyra.store.approvals import Approval
from palyra.store.database import Database, Tx
from palyra.system.clock import Clock

log = logging.getLogger("palyra.channels")

_RETRY_MS = 1_000
_LEAST_OF_ID = 6
_SAID = {
    "allow": "approved",
    "deny": "denied",
    "expired": "not answered in time",
    "withdrawn": "no longer needed",
}


class ApprovalPrompts:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        book: Book,
        posting: Posting,
        answers: ApprovalService,
        notices: Notices,
    ) -> None:
        self._db = db
        self._clock = clock
        self._book = book
        self._posting = posting
        self._answers = answers
        self._notices = notices
        # Where the owner's runs ask that nobody in a chat began; empty: not in a chat.
        self._to = ""
        self._beside: set[asyncio.Task[None]] = set()

    def asked(self, pending: AwaitedRun, request: ApprovalRequested) -> None:
        self._aside(self._persist(partial(self._ask, pending=pending, request=request)))

    def _ask(self, tx: Tx, pending: AwaitedRun, request: ApprovalRequested) -> None:
        """One step, and only once: the question where it can be answered, and a word to whoever has
        to wait for it.
        """
        found = approvals.find(tx, request.approval_id)
        if found is None or found.decision:
            return
        places = self._places(tx, pending, found)
        for place in places:
            # What the call would do is not everybody's to read.
            self._put(
                tx,
                place,
                found,
                pending.sender,
                brief=place == pending.place and not pending.direct,
            )
        messages.add_step(
            tx,
            pending.message_id,
            "asks",
            f"approval {texts.short(request.approval_id)}: {request.preview.title}",
        )
        name = texts.short(request.approval_id)
        if found.owner.startswith(approvals.CHANNEL):
            told = (
                f"{pending.sender} on {pending.place.connector} needs approval to {request.tool}:"
                f" {request.preview.title}"
            )
            self._notices.telling(
                "approval", f"approval:{request.approval_id}", told, "#/approvals"
            )(tx)
            if pending.place not in places:
                said = (
                    f"This needs an approval that you cannot give ({name}). I asked the owner and"
                    " continue when they answer."
                )
                self._posting.post(
                    tx,
                    pending.place,
                    said,
                    "told",
                    reply_id=f"{request.approval_id}w",
                    message_id=pending.message_id,
                )

    def _places(self, tx: Tx, pending: AwaitedRun, approval: Approval) -> list[ChatPlace]:
        """Return where the question is put: where the channel's settings say, else to the asker if
        it is theirs, else to the owner.
        """
        channel = self._book.find(pending.place.connector)
        if channel is not None and channel.approvals_to:
            return self._named(tx, channel.approvals_to)
        if approval.owner.startswith(approvals.CHANNEL):
            return self.where_is(tx, OWNER)
        alone = [] if pending.direct else self.where_is(tx, approval.owner)
        return alone or [pending.place]

    def _named(self, tx: Tx, to: str) -> list[ChatPlace]:
        connector, slash, conversation = to.partition("/")
        return [ChatPlace(connector, conversation)] if slash else self.where_is(tx, OWNER)

    async def use(self, to: str) -> None:
        """Put what the owner's runs ask that nobody in a chat began there too, from now on and what
        waits; nothing: nowhere.
        """
        self._to = to
        if to:
            await self._db.write(self._ask_all_elsewhere)

    def asked_elsewhere(self, request: ApprovalRequested) -> None:
        if self._to:
            self._aside(
                self._persist(partial(self._ask_elsewhere, approval_id=request.approval_id))
            )

    def _ask_all_elsewhere(self, tx: Tx) -> None:
        for approval in reversed(approvals.listing(tx, OWNER, pending=True)):
            self._ask_elsewhere(tx, approval.approval_id)

    def _ask_elsewhere(self, tx: Tx, approval_id: str) -> None:
        found = approvals.find(tx, approval_id)
        if (
            found is None
            or found.decision
            or found.owner != OWNER
            or messages.of_run(tx, found.run_id)
        ):
            return
        alone = [
            ChatPlace(each.connector, each.conversation) for each in people.of_principal(tx, OWNER)
        ]
        for place in self._named(tx, self._to):
            # Where others read along, what the call would do stays in the console.
            self._put(
                tx, place, found, f"A run of yours ({found.origin})", brief=place not in alone
            )

    def where_is(self, tx: Tx, principal: str) -> list[ChatPlace]:
        """Return where a person last wrote to us alone."""
        for person in people.of_principal(tx, principal):
            if person.conversation and self._book.is_on(person.connector):
                return [ChatPlace(person.connector, person.conversation)]
        return []

    def _put(
        self, tx: Tx, place: ChatPlace, approval: Approval, who: str, *, brief: bool = False
    ) -> None:
        request = approval.request
        reply_id = self._clock.new_id()
        if not outbox.was_asked(
            tx,
            AskedApproval(
                request.approval_id, reply_id, place.connector, place.conversation, place.thread
            ),
        ):
            return
        first = bool(request.group) and request.group == request.approval_id
        lines = approval_groups.pending_lines(tx, approval) if first else []
        text, buttons = texts.approval(
            request,
            who,
            buttons=self._posting.abilities(place.connector).buttons,
            brief=brief,
            together=len(lines),
        )
        self._posting.post(tx, place, text, "approval", reply_id=reply_id, buttons=buttons)

    def put(self, tx: Tx, place: ChatPlace, approval_id: str) -> bool:
        """Put an approval that waits somewhere, once; False if there is none that does."""
        approval = approvals.find(tx, approval_id)
        if approval is None or approval.decision:
            return False
        self._put(tx, place, approval, approval.owner)
        return True

    async def route(
        self, by: str, approval_id: str, *, principal: str = "", place: ChatPlace | None = None
    ) -> Approval:
        """Hand an approval on: to a person, who may then answer it, or into another
        conversation.
        """
        if not principal and place is None:
            raise InvalidInput("say to whom: a principal, or a channel and a conversation")
        if principal:
            check_principal(principal)
        if place is not None:
            self._book.get(place.connector)

        def step(tx: Tx) -> Approval:
            approval = approvals.get(tx, approval_id, by)
            if approval.decision:
                raise InvalidInput(
                    f"this approval was answered already: {approval.decision}",
                    approval_id=approval_id,
                )
            places = [place] if place is not None else self.where_is(tx, principal)
            for each in places:
                self._put(tx, each, approval, approval.owner)
            details: dict[str, Any] = {
                "to": principal or (f"{place.connector}/{place.conversation}" if place else "")
            }
            event = AdminChanged(
                what="channel", action="approval handed on", subject=approval_id, details=details
            )
            (entry,) = tape.append(tx, SYSTEM_TAPE, by, [event])
            if principal:
                approvals.hand_on(tx, approval_id, principal, entry.position)
            return approval

        return await self._db.write(step)

    async def answer(self, message: StoredMessage, who: Who, wanted: str, given: Answer) -> str:
        """Answer an approval from a chat, by its id or the end of it. Return what was understood
        and done.
        """
        approval = await self._db.read(partial(_wanted, wanted=wanted.upper(), who=who))
        if given.scope != "once" and not who.is_user:
            raise Forbidden("you may allow this once: more than that is for users of the daemon")
        if (
            given.decision == "allow"
            and approval.request.about == "tool"
            and not texts.shown(approval.request.preview)[1]
        ):
            raise Conflict(texts.elsewhere(approval.approval_id))
        try:
            settled = await self._answers.answer(
                who.principal, approval.approval_id, given, surface=f"channel:{message.connector}"
            )
        except Forbidden:
            # A session that several share is nobody's: whoever may speak for it must be let by
            # policy, not by being there.
            raise Forbidden("you may not answer this: only those whom policy allows can") from None
        return (
            f"{texts.short(approval.approval_id)} is"
            f" {_SAID.get(given.decision, given.decision)}{_how(settled)}."
        )

    async def answer_all(
        self, message: StoredMessage, who: Who, wanted: str, given: GroupAnswer
    ) -> str:
        """Answer all calls that were asked together. What a chat does not show whole stays
        pending.
        """
        first = await self._db.read(partial(_wanted, wanted=wanted.upper(), who=who))
        found = await self._db.read(
            lambda tx: approval_groups.lines(tx, first.approval_id, who.principal)
        )
        done = []
        for each in found:
            one = Answer(
                decision=given.decision,
                scope=given.scope,
                for_ms=given.for_ms,
                reason=given.reason,
            )
            try:
                done.append(await self.answer(message, who, each.approval_id, one))
            except (Conflict, Forbidden, InvalidInput) as error:
                done.append(f"{texts.short(each.approval_id)}: {error.message}")
        return "\n".join(done) or "none of these calls needs approval any more"

    def answered(self, resolved: ApprovalResolved) -> None:
        """Remove the buttons where it was asked, however it was answered."""
        self._aside(self._closed(resolved))

    async def _closed(self, resolved: ApprovalResolved) -> None:
        if await self._db.read(partial(outbox.asked_where, approval_id=resolved.approval_id)):
            await self._persist(partial(self._close, resolved=resolved))

    def _close(self, tx: Tx, resolved: ApprovalResolved) -> None:
        for asked in outbox.asked_where(tx, resolved.approval_id):
            approval = approvals.find(tx, resolved.approval_id)
            by = (
                f" by {approval.resolved_by}"
                if approval is not None and resolved.decision in ("allow", "deny")
                else ""
            )
            title = approval.request.preview.title if approval is not None else resolved.approval_id
            text = f"{title}\n{_SAID.get(resolved.decision, resolved.decision).capitalize()}{by}."
            place = ChatPlace(asked.connector, asked.conversation, asked.thread)
            self._posting.post(
                tx,
                place,
                text,
                "edit",
                reply_id=f"{asked.reply_id}{outbox.ANSWERED}",
                edits=asked.reply_id,
            )

    async def pending(self, who: Who) -> list[Approval]:
        return await self._db.read(partial(approvals.listing, owner=who.principal, pending=True))

    async def recover(self, pending: list[AwaitedRun]) -> None:
        """Recover after a start: put the questions that were asked and not put, and close those
        that were answered meanwhile.
        """

        def step(tx: Tx) -> None:
            for each in pending:
                for approval in approvals.pending_of_run(tx, each.run_id):
                    self._ask(tx, each, approval.request)
            for approval_id in outbox.unclosed(tx):
                found = approvals.find(tx, approval_id)
                if found is not None and found.resolution is not None:
                    self._close(tx, found.resolution)

        await self._db.write(step)

    async def _persist(self, step: partial[None]) -> None:
        while True:
            try:
                await self._db.write(step)
                return
            except Unavailable as error:
                log.warning("a question waits: %s", error.message)
                await self._clock.sleep(_RETRY_MS)
            except Exception:
                log.exception("a question could not be put")
                return

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def close(self) -> None:
        for task in self._beside:
            task.cancel()
        if self._beside:
            await asyncio.wait(self._beside, timeout=2.0)


def _how(settled: Approval) -> str:
    """Return how far an answer reaches, in words."""
    given = settled.resolution
    if given is None or given.decision != "allow":
        return f": {given.reason}" if given is not None and given.reason else ""
    if given.subject is None:
        return ", this once"
    about = f"{given.subject.tool} {given.subject.value or 'with any arguments'}"
    until = (
        "in this session"
        if given.scope == "session"
        else f"until {_clock_time(given.until_ms)} (UTC)"
    )
    return f", and {visible(about)} {until} without asking"


def _clock_time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M")


def _wanted(tx: Tx, wanted: str, who: Who) -> Approval:
    """The approval that is meant, among those that were put to somebody like this one."""
    if len(wanted) == 26:
        found = approvals.find(tx, wanted)
        if found is not None:
            return found
    elif len(wanted) >= _LEAST_OF_ID:
        mine = approvals.ending_with(tx, wanted)
        if len(mine) == 1:
            return mine[0]
        if mine:
            raise InvalidInput("more than one approval ends like this: write more of its id")
    raise NotFound(f"no approval that waits is called {wanted[:26]}: `status` lists yours")
