"""Programs that ask as they would ask a model: with a conversation of their own, tools of their
own, and no word for sessions.

The rule: a caller who names a session talks in it, and only what is new counts. Who names none goes
on where the history that it sends was answered; what nobody here knows of it is shown as that.
Results of its tools find their run by themselves.
"""

from collections.abc import Callable, Mapping, Sequence
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
from palyra.core.errors import InvalidInput, Unavailable
from palyra.core.events import ClientTool, Given, GivenTurn, Wanted
from palyra.core.labels import Label
from palyra.features.openai_api import client_tools, file_parts, history, places, rows
from palyra.features.openai_api.history import History, HistoryTurn
from palyra.features.openai_api.names import CallerRun, CallName
from palyra.features.openai_api.places import AnswerPlace, SessionPlace, SessionPlaces, WentOn
from palyra.features.openai_api.rows import AnsweredHistory
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
# Longer histories would hold the event loop up.
_INLINE = 4_096
_SEEN = "(see what is attached)"


class CallerRequest(Struct, frozen=True, kw_only=True):
    """`session`: the id or key of one; `user`: a name of the program's own that stands for one;
    `previous`: the run to go on from. `earlier` are the turns before the new ones; `new`, where it
    matters, is all that came with the message, results too.

    A file that is no bytes is the address of an image. `results` are texts by call, of calls of one
    run. `key` makes asking again the same question.
    """

    text: str = ""
    instructions: str = ""
    earlier: tuple[HistoryTurn, ...] = ()
    new: tuple[HistoryTurn, ...] = ()
    files: tuple[tuple[str, bytes | str], ...] = ()
    results: Mapping[CallName, str] = {}
    offered: tuple[ClientTool, ...] = ()
    wanted: Wanted | None = None
    model: str = ""
    session: str = ""
    user: str = ""
    previous: str = ""
    # Nobody waits for the answer: it is fetched later.
    background: bool = False
    key: str = ""
    # The parameter by which the caller wants the web to be searched.
    searches: str = ""
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
        self._places = SessionPlaces(db, sessions)

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
        said = await self._read(token, asked)
        if asked.results:
            return await self._go_on(principal, asked, said)
        submission_id = submission_of(principal, asked.key)
        place = await self._place(token, asked, said, submission_id)
        await client_tokens.check(self._db, token, {"session_id": place.session_id})
        try:
            return await self._say(principal, asked, said, place, submission_id)
        except WentOn:
            # Somebody else was faster: both histories are true, so this one gets a branch.
            if place.after is None:
                raise
            place = await self._places.branch(principal, place.after, place.told)
        return await self._say(principal, asked, said, place, submission_id)

    async def _say(
        self,
        principal: str,
        asked: CallerRequest,
        said: History,
        place: SessionPlace,
        submission_id: str,
    ) -> CallerRun:
        session_id = place.session_id
        fresh, joined = await self._db.read(lambda tx: _state(tx, session_id, submission_id))
        if joined is not None:
            # It says something else instead of what its tools gave.
            return await self._join(
                principal,
                asked,
                said,
                joined,
                lambda tx: client_tools.leave(tx, joined, asked.wanted),
            )
        # Who names a session may have said it all there before.
        unknown = place.told if fresh or not _named(asked) else ()
        if any(turn.files for turn in unknown):
            told, asked = await thread_pool.everyday.run(_with_files, unknown, asked)
        else:
            told, asked = _with_files(unknown, asked)
        origin = InputOrigin(
            given=_given(said, told),
            offered=await thread_pool.everyday.run(self._offered, asked) if asked.offered else (),
            wanted=asked.wanted,
            also=partial(_note, asked=asked, said=said, after=place.after),
        )
        submitted = await self._submit(principal, asked, session_id, submission_id, origin)
        return CallerRun(
            session_id, submitted.run_id, submitted.seq, _lasting(asked), bool(asked.key)
        )

    async def _read(self, token: Token, asked: CallerRequest) -> History:
        """The caller's history without secrets. It may be a whole book: looking through it must not
        hold everybody up.
        """
        new = asked.new or (HistoryTurn("user", asked.text),)
        scope = (token.principal, token.device)
        turns, behind = (*asked.earlier, *new), len(asked.earlier)
        read = partial(
            history.read, scope, turns, behind, asked.instructions, self._redactor.redact
        )
        files = sum(file_parts.size(part) for turn in turns for part in turn.files)
        small = len(asked.instructions) + history.size(turns) + files <= _INLINE
        return read() if small else await thread_pool.everyday.run(read)

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

    async def _place(
        self, token: Token, asked: CallerRequest, said: History, submission_id: str
    ) -> SessionPlace:
        principal = token.principal

        async def resolve(wanted: Resolve) -> SessionPlace:
            session = await self._sessions.resolve(principal, client_tokens.resolved(token, wanted))
            return SessionPlace(session.session_id, said.turns[: said.behind])

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
            return await self._places.again(principal, known, said)
        return await self._places.of(token, said) or await resolve(Resolve())

    async def _after(self, principal: str, run_id: str) -> SessionPlace:
        """The session of a run; a branch of it at the run's end, if it went on from there
        already.
        """
        run, last, end, rests = await self._db.read(
            lambda tx: (
                found := runs.get(tx, run_id, principal),
                runs.last_of(tx, run_id),
                rows.end_of(tx, run_id),
                rows.rests(tx, found.session_id),
            )
        )
        if rests:
            await self._places.bring_back(principal, run.session_id)
        after = AnswerPlace(run.session_id, run_id, end if last is None else last)
        if last is None:
            return SessionPlace(run.session_id, after=after if run.ended_ms else None)
        return await self._places.branch(principal, after)

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

    async def _go_on(self, principal: str, asked: CallerRequest, said: History) -> CallerRun:
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

            def take(tx: Tx) -> client_tools.ToolResultsPosition:
                taken = bring(tx)
                if not _named(asked):
                    rows.remember(tx, _answered(said, run_id, taken.seq, taken.run.session_id))
                return taken

            taken = await self._db.write(take)
            return CallerRun(taken.run.session_id, run_id, taken.seq, _lasting(asked))
        run = await self._gateway.run(principal, run_id)
        return await self._join(principal, asked, said, run, bring)

    async def _join(
        self,
        principal: str,
        asked: CallerRequest,
        said: History,
        run: RunRow,
        go_on: Callable[[Tx], object],
    ) -> CallerRun:
        """Join the message to the run that waits, and set it to work: in one step, or not at
        all.
        """

        def also(tx: Tx, submitted: Submitted) -> None:
            if submitted.run_id != run.run_id:
                raise WentOn(
                    f"run {run.run_id} does not wait any more: send the message alone",
                    run_id=run.run_id,
                )
            go_on(tx)
            _note(tx, submitted, asked=asked, said=said, after=None)

        origin = InputOrigin(given=_given(said, ()), also=also)
        submission_id = submission_of(principal, asked.key)
        submitted = await self._submit(
            principal, asked, run.session_id, submission_id, origin, "steer"
        )
        return CallerRun(run.session_id, run.run_id, submitted.seq, _lasting(asked))


def submission_of(principal: str, key: str) -> str:
    """A run id that the same key of the same caller always gives; a ULID is taken as it is."""
    if not key or ids.is_ulid(key):
        return key
    digest = sha256(f"{principal}\0{key}".encode()).digest()
    return ids.make(int.from_bytes(digest[:6], "big"), digest[6:16])


def _with_files(
    told: Sequence[HistoryTurn], asked: CallerRequest
) -> tuple[tuple[GivenTurn, ...], CallerRequest]:
    """Turns that nobody here knows, and the request with the newest of their files."""
    if history.size(told) > LONGEST_GIVEN:
        raise InvalidInput(
            f"earlier messages that are not known here may have {LONGEST_GIVEN} characters"
            " together: send fewer of them",
            limit=LONGEST_GIVEN,
        )
    files, notes = file_parts.of_past([turn.files for turn in told], MOST - len(asked.files))
    if files:
        asked = msgspec.structs.replace(asked, files=(*asked.files, *files))
    return history.told(told, notes), asked


def _given(said: History, told: tuple[GivenTurn, ...]) -> Given | None:
    if not said.instructions and not told:
        return None
    return Given(instructions=said.instructions, turns=told)


def _answered(said: History, run_id: str, seq: int, session_id: str) -> AnsweredHistory:
    return AnsweredHistory(said.digest, run_id, seq, session_id, said.instructed)


def _note(
    tx: Tx, submitted: Submitted, *, asked: CallerRequest, said: History, after: AnswerPlace | None
) -> None:
    """Note which run answers a history, in the step that takes its message in."""
    if after is not None:
        places.check(tx, after, submitted.run_id)
    if not _named(asked):
        answered = _answered(said, submitted.run_id, submitted.seq, submitted.session_id)
        rows.remember(tx, answered)


def _named(asked: CallerRequest) -> bool:
    return bool(asked.session or asked.user or asked.previous)


def _lasting(asked: CallerRequest) -> bool:
    """Return whether somebody can come back to the run, so that it outlives its caller."""
    return _named(asked) or asked.background


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
    given = len(asked.instructions) + sum(len(str(each)) for each in asked.offered)
    given += len(str(asked.wanted.schema)) if asked.wanted else 0
    if given > LONGEST_GIVEN:
        raise InvalidInput(
            f"instructions, tools and schemas may have {LONGEST_GIVEN} characters together: shorten"
            " them",
            limit=LONGEST_GIVEN,
        )
