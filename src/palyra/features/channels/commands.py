"""Commands in a chat: short words that act at once, under policy, without a model. Anything that is
not plainly one is none.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from palyra.agent.approval_groups import GroupAnswer
from palyra.agent.approval_steps import Answer
from palyra.agent.authorize import Authorizer
from palyra.agent.gateway import Gateway
from palyra.agent.sessions import Sessions
from palyra.core import labels
from palyra.core.errors import Conflict, InvalidInput, PalyraError, Unavailable
from palyra.core.events import Decision
from palyra.core.ids import OWNER
from palyra.core.labels import CLEAN
from palyra.core.tools import Scope
from palyra.core.verdicts import Allow, Ask
from palyra.core.verdicts import Origin as RunOrigin
from palyra.features.channels import pairing, texts
from palyra.features.channels import registry as books
from palyra.features.channels.approval_prompts import ApprovalPrompts
from palyra.features.channels.model import Inbound, unaddressed
from palyra.features.channels.pairing import PairingDesk
from palyra.features.channels.registry import Who
from palyra.features.channels.rows.messages import StoredMessage
from palyra.features.channels.run_bridge import Submitting
from palyra.features.channels.views import ChatPlace
from palyra.features.memory.model import NewMemory
from palyra.features.memory.service import Memory, Origin
from palyra.models.routing import Models
from palyra.policy.store import PolicyStore
from palyra.store import run_waits, runs, usage
from palyra.store.database import Database, Tx
from palyra.store.sessions import Session
from palyra.system.clock import Clock
from palyra.tools.catalogue import Catalogue

NAMES = (
    "status",
    "stop",
    "reset",
    "new",
    "approve",
    "deny",
    "model",
    "retry",
    "cancel",
    "usage",
    "remember",
    "pair",
    "whoami",
    "help",
)
# A single word and nothing else, unless a sign before it says that a command is meant.
_ALONE = frozenset({"status", "stop", "reset", "new", "usage", "whoami", "help"})
_ID = re.compile(r"[0-9A-Za-z]{6,26}")
_DOUBTS: dict[str, Decision] = {"happened": "happened", "again": "again", "skip": "skip"}
_DAY_MS = 86_400_000


class ChatCommand(Struct, frozen=True):
    name: str
    rest: str = ""


def parse(message: Inbound, names: Sequence[str]) -> ChatCommand | None:
    """The command that a message is. `new ideas for dinner` is none; `new` and `/new` are."""
    if message.files or message.forwarded:
        return None
    text = unaddressed(message.text, names).strip()
    marked = text[:1] in ("/", "!")
    first, _, rest = text.lstrip("/!").partition(" ")
    # What chats put behind a word, and `/status@palyra`.
    name, rest = first.partition("@")[0].strip(".!?:").casefold(), rest.strip()
    if name not in NAMES:
        return None
    if marked or message.pressed:
        return ChatCommand(name, rest)
    plain = {
        "approve": (
            bool(_ID.fullmatch(rest.split()[0])) and len(rest.split()) <= _LONGEST_APPROVAL
            if rest
            else False
        ),
        "deny": bool(_ID.fullmatch(rest.split()[0])) if rest else False,
        "pair": pairing.looks_like_code(rest),
        "model": len(rest.split()) <= 1,
        "remember": bool(rest),
    }
    return ChatCommand(name, rest) if (name in _ALONE and not rest) or plain.get(name) else None


_LONGEST_APPROVAL = 6
_FOR = re.compile(r"(?:for )?(\d{1,4}) ?(m|min|minutes?|h|hours?|d|days?)")
_MS = {"m": 60_000, "h": 3_600_000, "d": _DAY_MS}
_HOW = (
    "write `approve ID` (once), `approve ID session`, `approve ID 2h` (for a time), or `deny ID`"
    " and why; `approve ID all` and `deny ID all` answer what was asked together"
)


def understood(choice: str) -> Answer:
    """Return the answer that stands behind `approve ID`. Raise InvalidInput for what means none:
    nothing is guessed.
    """
    said = " ".join(choice.split()).casefold().strip(".!")
    if said in ("", "once", "allow", "yes"):
        return Answer(decision="allow")
    if said in ("session", "for session", "for this session", "this session"):
        return Answer(decision="allow", scope="session")
    if (found := _FOR.fullmatch(said)) is not None:
        return Answer(decision="allow", scope="timed", for_ms=int(found[1]) * _MS[found[2][0]])
    if said in _DOUBTS:
        return Answer(decision=_DOUBTS[said])
    if said == "always":
        raise InvalidInput(
            f"`always` is decided in the console or with `palyra approvals allow`; here, {_HOW}"
        )
    raise InvalidInput(
        f"I did not understand {choice.strip()[:40]!r}, and nothing was decided: {_HOW}"
    )


class Act(Protocol):
    async def __call__(self, rest: str, message: StoredMessage, who: Who) -> str: ...


class Commands:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        gateway: Gateway,
        sessions: Sessions,
        models: Models,
        memory: Memory,
        catalogue: Catalogue,
        policy: PolicyStore,
        judging: Authorizer,
        desk: PairingDesk,
        asking: ApprovalPrompts,
        submitting: Submitting,
    ) -> None:
        self._db = db
        self._clock = clock
        self._gateway = gateway
        self._sessions = sessions
        self._models = models
        self._memory = memory
        self._catalogue = catalogue
        self._policy = policy
        self._judging = judging
        self._desk = desk
        self._asking = asking
        self._submitting = submitting

    async def run(self, command: ChatCommand, message: StoredMessage, who: Who) -> str:
        """Do it, and say what was done. Whatever cannot be done is said, not raised, but that the
        store is away.
        """
        act: Act = getattr(self, f"_{command.name}")
        try:
            return await act(command.rest, message, who)
        except Unavailable:
            raise
        except PalyraError as error:
            return f"That cannot be done: {texts.problem(error, inside=who.is_user)}"

    async def _help(self, rest: str, message: StoredMessage, who: Who) -> str:
        return texts.HELP

    async def _whoami(self, rest: str, message: StoredMessage, who: Who) -> str:
        lines = [
            f"You are {message.inbound.sender.display or message.sender} ({who.principal}), to me"
            f" {_STANDING[who.standing]}."
        ]
        if not message.inbound.sender.verified:
            lines.append(
                "This platform does not vouch for your name, so I treat you as somebody I do not"
                " know."
            )
        if who.shared:
            lines.append(
                f"In this conversation everybody shares one session, which is {who.acts_as}'s."
            )
        return "\n".join(lines)

    async def _status(self, rest: str, message: StoredMessage, who: Who) -> str:
        unfinished = await self._db.read(
            partial(runs.unfinished_of_principal, principal=who.acts_as)
        )
        asked = await self._asking.pending(who)
        if not unfinished and not asked:
            return "Nothing of yours is under way."
        shown = unfinished[:20]
        waits = await self._db.read(
            partial(run_waits.of_runs, run_ids=[run.run_id for run in shown])
        )
        inside, now_ms = who.is_user and message.inbound.is_direct, self._clock.now_ms()
        lines = [
            texts.run_state(run, waits.get(run.run_id), now_ms, inside=inside) for run in shown
        ]
        lines += [
            f"{texts.short(each.approval_id)} needs approval: {each.request.preview.title}"
            for each in asked[:20]
        ]
        return "\n".join(lines)

    async def _stop(self, rest: str, message: StoredMessage, who: Who) -> str:
        stopped = list((await self._gateway.stop(who.acts_as, "STOP from chat")).cancelled)
        if who.principal != who.acts_as:
            stopped += (await self._gateway.stop(who.principal, "STOP from chat")).cancelled
        return (
            f"Stopped: {len(stopped)} {'run was' if len(stopped) == 1 else 'runs were'} ended."
            if stopped
            else "Nothing was running."
        )

    async def _reset(self, rest: str, message: StoredMessage, who: Who) -> str:
        session = await self._submitting.session(who, message)
        await self._sessions.reset(session.owner, session.session_id)
        return (
            "This conversation starts over. What was said before is not forgotten by the journal,"
            " only by me."
        )

    async def _new(self, rest: str, message: StoredMessage, who: Who) -> str:
        session = await self._submitting.session(who, message)
        await self._submitting.begin_anew(who)
        return (
            "A new conversation begins with your next message; this one stays as"
            f" {session.session_id}."
        )

    async def _approve(self, rest: str, message: StoredMessage, who: Who) -> str:
        approval_id, _, choice = rest.partition(" ")
        word, _, how = choice.strip().partition(" ")
        if word.casefold() == "all":
            one = understood(how)
            if one.decision == "allow":
                given = GroupAnswer(decision="allow", scope=one.scope, for_ms=one.for_ms)
                return await self._asking.answer_all(message, who, approval_id, given)
        return await self._asking.answer(message, who, approval_id, understood(choice))

    async def _deny(self, rest: str, message: StoredMessage, who: Who) -> str:
        approval_id, _, reason = rest.partition(" ")
        word, _, why = reason.strip().partition(" ")
        if word.casefold() == "all":
            given = GroupAnswer(decision="deny", reason=why.strip())
            return await self._asking.answer_all(message, who, approval_id, given)
        return await self._asking.answer(
            message, who, approval_id, Answer(decision="deny", reason=reason.strip())
        )

    async def _model(self, rest: str, message: StoredMessage, who: Who) -> str:
        if not who.is_user:
            return "Only users of the daemon choose the model: what it costs is theirs."
        known = [target.name for target in self._models.targets]
        if not rest:
            now = await self._db.read(partial(books.chosen, session_key=who.session_key))
            return texts.models(now.model or known[0], known)
        if rest.isdecimal() and not 1 <= int(rest) <= len(known):
            raise InvalidInput(f"there are {len(known)} models: `model` lists them")
        target = self._models.find(known[int(rest) - 1] if rest.isdecimal() else rest)

        def step(tx: Tx) -> None:
            books.choose(
                tx, who.session_key, replace(books.chosen(tx, who.session_key), model=target.name)
            )

        await self._db.write(step)
        asked = await self._ask_again(message, who, target.name)
        since = "From now" if asked else "From the next message"
        return f"{since} on this conversation uses {target.name}."

    async def _retry(self, rest: str, message: StoredMessage, who: Who) -> str:
        if not who.is_user:
            return "Only users of the daemon have a model asked again; it is by itself, too."
        asked = await self._ask_again(message, who)
        return "Trying again now." if asked else "Nothing here waits for a model."

    async def _ask_again(self, message: StoredMessage, who: Who, model: str = "") -> bool:
        """Ask now for what waits for its provider in this conversation; return whether it does."""
        asked = False
        for run in await self._under_way(message, who):
            if run.reason == "provider":
                # It may have been let through meanwhile: then it is being asked.
                with suppress(Conflict):
                    await self._gateway.retry(who.acts_as, run.run_id, model)
                asked = True
        return asked

    async def _cancel(self, rest: str, message: StoredMessage, who: Who) -> str:
        found = await self._under_way(message, who)
        for run in found:
            await self._gateway.cancel(who.acts_as, run.run_id, "cancelled in the chat")
        return "Cancelled." if found else "Nothing is under way here."

    async def _under_way(self, message: StoredMessage, who: Who) -> list[runs.RunRow]:
        session = await self._submitting.session(who, message)
        unfinished = await self._db.read(
            partial(runs.unfinished_of_principal, principal=session.owner)
        )
        return [run for run in unfinished if run.session_id == session.session_id]

    async def _usage(self, rest: str, message: StoredMessage, who: Who) -> str:
        def query(tx: Tx) -> usage.UsageRow:
            return usage.total(
                tx,
                usage.UsageFilter(principal=who.acts_as, since_ms=tx.now_ms // _DAY_MS * _DAY_MS),
            )

        used = await self._db.read(query)
        cost = f"${used.cost_microusd / 1_000_000:.4f}" + (
            " and what nobody knows the price of" if used.unpriced else ""
        )
        return (
            f"Today (UTC): {used.calls} calls, {used.input_tokens} tokens in, {used.output_tokens}"
            f" out, {cost}."
        )

    async def _remember(self, rest: str, message: StoredMessage, who: Who) -> str:
        session = await self._submitting.session(who, message)
        label = CLEAN if who.standing == "person" else labels.untrusted(who.principal)
        if not self._may_remember(session, who):
            return "Policy does not let you have things remembered here."
        where = await self._memory.where(session.owner, session.session_id)
        kept = await self._memory.add(where, NewMemory(text=rest), Origin("user", label))
        return (
            "That is remembered."
            if kept.state == "active"
            else "Noted. The owner reviews it first."
        )

    def _may_remember(self, session: Session, who: Who) -> bool:
        """Return whether a note needs no approval: a person who asks for it themselves has approved
        what policy would have asked.
        """
        spec = next((each for each in self._catalogue.specs() if each.name == "memory.write"), None)
        if spec is None:
            return False
        origin: RunOrigin = "interactive" if who.is_user else "channel"
        question = self._judging.question(session, origin, CLEAN, spec, Scope(), ())
        return isinstance(self._policy.judge(question), Allow | Ask)

    async def _pair(self, rest: str, message: StoredMessage, who: Who) -> str:
        code = pairing.normal(rest)
        place = ChatPlace(message.connector, message.conversation, message.thread)
        by = who.principal if who.standing == "person" else str(message.principal)
        return await self._db.write(
            partial(
                self._desk.enter,
                by=OWNER if by == OWNER else by,
                place=place,
                sender=message.inbound.sender,
                code=code,
            )
        )


_STANDING = {
    "person": "one of the daemon's users",
    "paired": "a guest whom the owner has admitted",
    "stranger": "nobody I know",
}
