"""Programs that ask as they would ask a model: with a conversation of their own, tools of their
own, and no word for sessions.

The rule: a caller who names a session talks in it, and only what is new counts; who names none gets
one of its own, with what it remembers shown as that. Results of its tools find their run by
themselves.
"""

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from importlib.util import find_spec

import msgspec
from msgspec import Struct

from palyra.agent import answer_format, client_tokens
from palyra.agent.gateway import Gateway
from palyra.agent.message_inputs import Attaching
from palyra.agent.sessions import Resolve, Sessions
from palyra.agent.submit import InputOrigin, Submission, Submitted
from palyra.core import ids, labels
from palyra.core.errors import Conflict, InvalidInput, Unavailable
from palyra.core.events import ClientTool, Earlier, Given, Wanted
from palyra.core.labels import Label
from palyra.features.openai_api import client_tools
from palyra.features.openai_api.names import CallerRun, CallName
from palyra.features.references.attachments import MOST
from palyra.features.references.message_inputs import Enclosures
from palyra.store import runs
from palyra.store.database import Database, Tx
from palyra.store.runs import RunRow
from palyra.store.tokens import Token
from palyra.system import thread_pool
from palyra.system.redactor import Redactor

# Of everything that a program gives beside its message.
LONGEST_GIVEN = 1 << 20
MOST_TOOLS = 128
_LONGEST_KEY = 255
_SEEN = "(see what is attached)"


class CallerRequest(Struct, frozen=True, kw_only=True):
    """`session`: the id or key of one; `user`: a name of the program's own that stands for one;
    `previous`: the run to go on from.

    A file that is no bytes is the address of an image. `results` are texts by call, of calls of one
    run. `key` makes asking again the same question.
    """

    text: str = ""
    instructions: str = ""
    earlier: tuple[Earlier, ...] = ()
    files: tuple[tuple[str, bytes | str], ...] = ()
    results: Mapping[CallName, str] = {}
    offered: tuple[ClientTool, ...] = ()
    wanted: Wanted | None = None
    model: str = ""
    session: str = ""
    user: str = ""
    previous: str = ""
    key: str = ""
    # What the caller calls the options of its wish, where that is another word than ours.
    names: Mapping[str, str] = {}


class Callers:
    def __init__(
        self,
        db: Database,
        gateway: Gateway,
        sessions: Sessions,
        enclosures: Enclosures,
        redactor: Redactor,
    ) -> None:
        self._db = db
        self._gateway = gateway
        self._sessions = sessions
        self._enclosures = enclosures
        self._redactor = redactor

    async def begin(
        self, principal: str, asked: CallerRequest, token: Token | None = None
    ) -> CallerRun:
        """Set the run to work that answers. A client's `token` keeps it to its own sessions."""
        _check(asked)
        token = token or Token("", "", principal, "owner", 0)
        for run_id in (*(name.run_id for name in asked.results), asked.previous):
            await client_tokens.check(self._db, token, {"run_id": run_id})
        if asked.wanted is not None:
            self._gateway.check_options(asked.model, asked.wanted.options, asked.names)
            asked = msgspec.structs.replace(asked, wanted=await self._wish(asked.wanted))
        if asked.results:
            return await self._go_on(principal, asked)
        submission_id = submission_of(principal, asked.key)
        session_id = await self._session(token, asked, submission_id)
        await client_tokens.check(self._db, token, {"session_id": session_id})
        fresh, joined = await self._db.read(lambda tx: _state(tx, session_id, submission_id))
        if joined is not None:
            # It says something else instead of what its tools gave.
            return await self._join(
                principal, asked, joined, lambda tx: client_tools.leave(tx, joined, asked.wanted)
            )
        said = InputOrigin(
            given=await self._given(asked, fresh=fresh),
            offered=await thread_pool.everyday.run(self._offered, asked) if asked.offered else (),
            wanted=asked.wanted,
        )
        submitted = await self._submit(principal, asked, session_id, submission_id, said)
        return CallerRun(
            session_id, submitted.run_id, submitted.seq, _named(asked), bool(asked.key)
        )

    async def leave(self, principal: str, begun: CallerRun) -> None:
        """End a run that nobody can find again: the caller is gone."""
        if not begun.named:
            await self._gateway.cancel(principal, begun.run_id, "the program that asked went away")

    async def give_up(self, principal: str, begun: CallerRun) -> None:
        """Cancel a run whose caller is told that nobody can answer now. They ask again, so this run
        must not answer, too; unless asking again finds this one.
        """
        if not begun.keyed:
            await self._gateway.cancel(
                principal, begun.run_id, "no provider answered in the caller's time"
            )

    async def _session(self, token: Token, asked: CallerRequest, submission_id: str) -> str:
        principal = token.principal

        async def resolve(wanted: Resolve) -> str:
            return (
                await self._sessions.resolve(principal, client_tokens.resolved(token, wanted))
            ).session_id

        known = (
            await self._db.read(lambda tx: runs.find_submission(tx, submission_id))
            if submission_id
            else None
        )
        if asked.session:
            by_id = ids.is_ulid(asked.session)
            wanted = (
                Resolve(session_id=asked.session, must_exist=True)
                if by_id
                else Resolve(key=asked.session)
            )
            return await resolve(wanted)
        if asked.previous and known is None:
            return await self._after(principal, asked.previous)
        if asked.user:
            return await resolve(Resolve(key=f"openai:{asked.user}"))
        if known is not None:
            return (await self._gateway.run(principal, known.run_id)).session_id
        return await resolve(Resolve())

    async def _after(self, principal: str, run_id: str) -> str:
        """The session of a run; a branch of it at the run's end, if it went on from there
        already.
        """
        run, last = await self._db.read(
            lambda tx: (runs.get(tx, run_id, principal), runs.last_of(tx, run_id))
        )
        if last is None:
            return run.session_id
        return (await self._sessions.branch(principal, run.session_id, last, "")).session_id

    async def _submit(
        self,
        principal: str,
        asked: CallerRequest,
        session_id: str,
        submission_id: str,
        said: InputOrigin,
        mode: str = "",
    ) -> Submitted:
        brought, files = await self._fetched(principal, session_id, asked.files)
        keep = self._enclosures.attachments.keep
        attached = [
            Attaching(artifact=(await keep(principal, session_id, name, data)).artifact, name=name)
            for name, data in files
        ]
        submission = Submission(
            text=asked.text.strip() or _SEEN,
            run_id=submission_id,
            mode="steer" if mode else "followup",
            model=asked.model,
            attachments=tuple(attached),
        )
        return await self._gateway.submit(
            principal, session_id, submission, origin="api", brought=brought, said=said
        )

    async def _fetched(
        self, principal: str, session_id: str, files: tuple[tuple[str, bytes | str], ...]
    ) -> tuple[Label, list[tuple[str, bytes]]]:
        """All files as their bytes, and the label of what came over the network."""
        if len(files) > MOST:
            raise InvalidInput(
                f"a message may have {MOST} files, and this one has {len(files)}", limit=MOST
            )
        urls = [data for _, data in files if isinstance(data, str)]
        found = (
            await self._enclosures.references.pictures(principal, session_id, urls) if urls else []
        )
        coming = iter(found)
        named = [(name, next(coming)[0] if isinstance(data, str) else data) for name, data in files]
        return labels.join([label for _, label in found]), named

    async def _given(self, asked: CallerRequest, *, fresh: bool) -> Given | None:
        earlier = asked.earlier if fresh else ()
        if not asked.instructions and not earlier:
            return None
        # It may be a whole book: looking through it must not hold everybody up.
        return await thread_pool.everyday.run(self._clean, asked.instructions, earlier)

    def _clean(self, instructions: str, earlier: tuple[Earlier, ...]) -> Given:
        redact = self._redactor.redact
        return Given(
            instructions=redact(instructions),
            earlier=tuple(Earlier(each.role, redact(each.text)) for each in earlier),
        )

    def _offered(self, asked: CallerRequest) -> tuple[ClientTool, ...]:
        redact, redact_json = self._redactor.redact, self._redactor.redact_json
        return tuple(
            ClientTool(each.name, redact(each.description), redact_json(each.parameters))
            for each in asked.offered
        )

    async def _wish(self, wanted: Wanted) -> Wanted:
        if wanted.form == "schema" and find_spec("jsonschema_rs") is None:
            raise Unavailable(
                "to judge answers by a schema the package jsonschema-rs is missing: install"
                " palyra[mcp]"
            )
        redactor = self._redactor
        schema = await redactor.redacted_json(wanted.schema)
        wanted = msgspec.structs.replace(wanted, name=redactor.redact(wanted.name), schema=schema)
        await answer_format.check(wanted)
        return wanted

    async def _go_on(self, principal: str, asked: CallerRequest) -> CallerRun:
        run_id = next(iter(asked.results)).run_id
        results = {
            name.call_id: await self._redactor.redacted(text)
            for name, text in asked.results.items()
        }
        bring = partial(
            client_tools.bring,
            principal=principal,
            run_id=run_id,
            results=results,
            wanted=asked.wanted,
        )
        if not asked.text.strip() and not asked.files:
            taken = await self._db.write(bring)
            return CallerRun(taken.run.session_id, run_id, taken.seq, _named(asked))
        run = await self._gateway.run(principal, run_id)
        return await self._join(principal, asked, run, bring)

    async def _join(
        self, principal: str, asked: CallerRequest, run: RunRow, go_on: Callable[[Tx], object]
    ) -> CallerRun:
        """Join the message to the run that waits, and set it to work: in one step, or not at
        all.
        """

        def also(tx: Tx, submitted: Submitted) -> None:
            if submitted.run_id != run.run_id:
                raise Conflict(
                    f"run {run.run_id} does not wait any more: send the message alone",
                    run_id=run.run_id,
                )
            go_on(tx)

        said = InputOrigin(given=await self._given(asked, fresh=False), also=also)
        submission_id = submission_of(principal, asked.key)
        submitted = await self._submit(
            principal, asked, run.session_id, submission_id, said, "steer"
        )
        return CallerRun(run.session_id, run.run_id, submitted.seq, _named(asked))


def submission_of(principal: str, key: str) -> str:
    """A run id that the same key of the same caller always gives; a ULID is taken as it is."""
    if not key or ids.is_ulid(key):
        return key
    digest = sha256(f"{principal}\0{key}".encode()).digest()
    return ids.make(int.from_bytes(digest[:6], "big"), digest[6:16])


def _named(asked: CallerRequest) -> bool:
    return bool(asked.session or asked.user or asked.previous)


def _state(tx: Tx, session_id: str, submission_id: str) -> tuple[bool, RunRow | None]:
    """Return whether nothing was said before this, and which run it joins: one that waits for its
    caller, or the one it joined before.
    """
    fresh = runs.first_of_session(tx, session_id) in ("", submission_id)
    known = runs.find_submission(tx, submission_id) if submission_id else None
    if known is None:
        return fresh, client_tools.waiting(tx, session_id)
    return fresh, runs.find(tx, known.run_id) if known.mode == "steer" else None


def _check(asked: CallerRequest) -> None:
    if len(asked.key) > _LONGEST_KEY:
        raise InvalidInput(f"the Idempotency-Key may have {_LONGEST_KEY} characters")
    if len(asked.offered) > MOST_TOOLS:
        raise InvalidInput(
            f"a program may bring {MOST_TOOLS} tools, and this one brings {len(asked.offered)}",
            limit=MOST_TOOLS,
        )
    if len({each.name for each in asked.offered}) != len(asked.offered):
        raise InvalidInput("two of the tools have the same name")
    if len({name.run_id for name in asked.results}) > 1:
        raise InvalidInput(
            "these results belong to calls of different answers: bring those of the last one"
        )
    given = (
        len(asked.instructions)
        + sum(len(each.text) for each in asked.earlier)
        + sum(len(str(each)) for each in asked.offered)
    )
    given += len(str(asked.wanted.schema)) if asked.wanted else 0
    if given > LONGEST_GIVEN:
        raise InvalidInput(
            f"instructions, earlier messages, tools and schemas may have {LONGEST_GIVEN} characters"
            " together: name a session with X-Palyra-Session, then only what is new is sent",
            limit=LONGEST_GIVEN,
        )
