"""Policies over HTTP as somebody edits them: the files, whether a text would load, what it would
change, and who can do what.

Saving is the owner's: it is recorded, and what would not load never replaces what is in force.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from palyra.agent.authorize import complete
from palyra.agent.sessions import Sessions
from palyra.api import streams
from palyra.api.admin import Rule
from palyra.api.auth import Access
from palyra.api.calls import (
    SSE,
    ApiCall,
    Count,
    HttpResponse,
    Input,
    Nothing,
    StreamingResponse,
    ok,
)
from palyra.api.policy_tools import DecidedCall
from palyra.api.routes import Gives, Route
from palyra.core.errors import InvalidInput
from palyra.core.events import AdminChanged
from palyra.core.ids import OWNER, SYSTEM_TAPE, check_principal
from palyra.core.labels import Label
from palyra.core.services import Services
from palyra.core.tools import Scope, ToolSpec
from palyra.core.verdicts import Origin, Question
from palyra.policy import backtest, policy_set, reports, sources
from palyra.policy import folder as files
from palyra.policy import store as change_log
from palyra.policy.folder import PolicyFile
from palyra.policy.reports import SITUATIONS, Report, Situation, ToolRow
from palyra.policy.sources import PolicyProblem
from palyra.policy.store import PolicyStore, Reloaded
from palyra.store import tape
from palyra.store.database import Database
from palyra.system.clock import Clock
from palyra.tools.catalogue import Catalogue

FileName = Annotated[str, Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,80}\.cedar|groups\.toml)$")]
Text = Annotated[str, Meta(max_length=200_000)]
Digest = Annotated[str, Meta(pattern="^([0-9a-f]{64})?$")]
PresetName = Literal["locked", "default", "coding", "research"]


class PolicyFiles(Struct, frozen=True):
    """`presets` are all there are; `shipped` files cannot be changed. `schema` is what a policy can
    talk about, in Cedar's own form.
    """

    folder: str
    preset: str
    presets: tuple[str, ...]
    files: list[PolicyFile]
    schema: str = ""


class PolicyDraft(Input, frozen=True, kw_only=True):
    """A text that is not saved."""

    name: FileName
    text: Text
    preset: PresetName | None = None


class Validated(Struct, frozen=True):
    """`policies` are those of the text, if everything would load with it."""

    ok: bool
    problems: list[PolicyProblem]
    policies: list[Rule]


class DraftTest(Input, frozen=True, kw_only=True):
    """Recorded calls, decided again: under another preset, with a text in place of a file, or
    both.
    """

    name: FileName | None = None
    text: Text = ""
    preset: PresetName | None = None
    since_ms: Count = 0


class SavedFile(Input, frozen=True, kw_only=True):
    """`was`: the digest of the text that was edited; empty for a new file."""

    name: FileName
    text: Text
    was: Digest = ""


class RemovedFile(Input, frozen=True, kw_only=True):
    name: FileName
    was: Digest


class Saved(Struct, frozen=True):
    file: PolicyFile | None
    reloaded: Reloaded


class WhoQuery(Input, frozen=True, kw_only=True):
    principal: str = OWNER
    origin: Origin = "interactive"


class WhoCan(Struct, frozen=True):
    """`known` are principals that have a token or are in a group."""

    principal: str
    known: list[str]
    situations: tuple[Situation, ...]
    tools: list[ToolRow]


async def listing(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    store = call.services.get(PolicyStore)
    found = await asyncio.to_thread(files.listing, store.folder, store.preset)
    schema = await asyncio.to_thread(policy_set.schema_text)
    return ok(PolicyFiles(str(store.folder or ""), store.preset, policy_set.PRESETS, found, schema))


async def validate(call: ApiCall[Nothing, PolicyDraft]) -> HttpResponse:
    store, body = call.services.get(PolicyStore), call.body
    found, problems = await asyncio.to_thread(
        files.tried, store.folder, body.preset or store.preset, body.name, body.text
    )
    own = (
        [rule for rule in found.rules if rule.file == str((store.folder or Path()) / body.name)]
        if found
        else []
    )
    shown = [Rule(rule.id, rule.effect, rule.reason, body.name, rule.line) for rule in own]
    return ok(Validated(found is not None, problems, shown))


async def test(call: ApiCall[Nothing, DraftTest]) -> HttpResponse | StreamingResponse:
    store, body = call.services.get(PolicyStore), call.body
    preset = body.preset or store.preset
    edits = {} if body.name is None else {body.name: body.text}
    found, problems = await asyncio.to_thread(policy_set.build, store.folder, preset, edits)
    if found is None:
        raise sources.refuse(problems)

    def work(progress: Callable[[int], None]) -> Report:
        return backtest.retest(
            call.services.get(Database).read_from_thread, found, body.since_ms, progress
        )

    return await streams.told(call.headers, work, DecidedCall)


async def save(call: ApiCall[Nothing, SavedFile]) -> HttpResponse:
    services, body = call.services, call.body
    act = partial(
        files.save,
        _folder(services),
        services.get(PolicyStore).preset,
        body.name,
        body.text,
        body.was,
    )
    saved, reloaded = await asyncio.to_thread(services.get(PolicyStore).change, act)
    await _record(services, call.principal, "file saved", body.name, saved.digest, reloaded)
    return ok(Saved(saved, reloaded))


async def remove(call: ApiCall[RemovedFile, Nothing]) -> HttpResponse:
    services, query = call.services, call.query
    act = partial(
        files.remove, _folder(services), services.get(PolicyStore).preset, query.name, query.was
    )
    _, reloaded = await asyncio.to_thread(services.get(PolicyStore).change, act)
    await _record(services, call.principal, "file removed", query.name, "", reloaded)
    return ok(Saved(None, reloaded))


def _folder(services: Services) -> Path:
    folder = services.get(PolicyStore).folder
    if folder is None:
        raise InvalidInput("there is no policy folder: set policy.folder in the config")
    return folder


async def _record(
    services: Services, by: str, action: str, name: str, digest: str, reloaded: Reloaded
) -> None:
    event = AdminChanged(what="policy", action=action, subject=name, details={"digest": digest})
    await services.get(Database).write(lambda tx: tape.append(tx, SYSTEM_TAPE, by, [event]))
    texts = services.get(PolicyStore).current.texts
    await change_log.record(services.get(Database), by, reloaded, texts)


async def who_can(call: ApiCall[WhoQuery, Nothing]) -> HttpResponse:
    services = call.services
    principal = check_principal(call.query.principal)
    workspace = services.get(Sessions).default_workspace or "/workspace"
    now_ms, session_id = services.get(Clock).now_ms(), services.get(Clock).new_id()

    def question(*, tool: ToolSpec, scope: Scope, label: Label) -> Question:
        return complete(
            Question(
                principal=principal,
                session_id=session_id,
                tool=tool,
                scope=scope,
                origin=call.query.origin,
                now_ms=now_ms,
                label=label,
            )
        )

    rows = await asyncio.to_thread(
        reports.table,
        services.get(PolicyStore).judge,
        list(services.get(Catalogue).specs()),
        workspace,
        question,
    )
    tokens = {token.principal for token in await services.get(Access).listing()}
    known = sorted({OWNER, *tokens, *services.get(PolicyStore).current.grouped_principals})
    return ok(WhoCan(principal, known, SITUATIONS, rows))


_FILES = "/v1/policy/files"
POLICY_FILES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path=_FILES,
        summary="the policy files, with their texts",
        handler=listing,
        scope="owner",
        gives=(Gives(200, PolicyFiles),),
    ),
    Route(
        method="POST",
        path=_FILES,
        summary="save a policy file, if everything loads with it",
        handler=save,
        scope="owner",
        body=SavedFile,
        gives=(Gives(200, Saved),),
        errors=(409,),
    ),
    Route(
        method="DELETE",
        path=_FILES,
        summary="remove a policy file, if everything loads without it",
        handler=remove,
        scope="owner",
        query=RemovedFile,
        gives=(Gives(200, Saved),),
        errors=(404, 409),
    ),
    Route(
        method="POST",
        path="/v1/policy/validate",
        summary="whether a text would load as a policy file; nothing is saved",
        handler=validate,
        scope="owner",
        body=PolicyDraft,
        gives=(Gives(200, Validated),),
    ),
    Route(
        method="POST",
        path="/v1/policy/test",
        summary="decide every recorded call again with a text that is not saved",
        handler=test,
        scope="owner",
        body=DraftTest,
        gives=(Gives(200, Report), Gives(200, media=SSE)),
        headers=(
            ("Accept", "`text/event-stream` for events `progress` and, at the end, `report`"),
        ),
    ),
    Route(
        method="GET",
        path="/v1/policy/who",
        summary="who can do what: every tool in a few plain situations",
        handler=who_can,
        query=WhoQuery,
        gives=(Gives(200, WhoCan),),
    ),
)
