"""Checkpoints, proofs and bundles over HTTP."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from palyra.agent.sessions import Sessions
from palyra.api.calls import ApiCall, Count, HttpResponse, Input, Nothing, Ulid, Upload, ok
from palyra.api.routes import Gives, Route, Takes
from palyra.core.errors import InvalidInput, NotFound
from palyra.features.proof.anchors import Anchors
from palyra.features.proof.bundle import Disclosure, ProofBundle
from palyra.features.proof.service import ConsistencyProof, InclusionProof, JournalProof
from palyra.features.proof.witness import MOST_BYTES, TEXT_TYPE, Witness
from palyra.store.tree import StoredCheckpoint
from palyra.system.thread_pool import everyday

_MOST_POSITIONS = 10_000


class WantedInclusion(Input, frozen=True, kw_only=True):
    """`size`: in the tree of so many entries; 0: of the first checkpoint that covers it."""

    size: Count = 0


class WantedConsistency(Input, frozen=True, kw_only=True):
    """`size`: 0 for the newest checkpoint."""

    old: Annotated[int, Meta(ge=1)]
    size: Count = 0


class WantedBundle(Input, frozen=True, kw_only=True):
    """A session, a run, or positions from `first` to `last`. `without`: positions whose bodies are
    left out, with commas between them.
    """

    session_id: Ulid = ""
    run_id: Ulid = ""
    first: Count = 0
    last: Count = 0
    bodies: bool = True
    without: Annotated[str, Meta(pattern="^[0-9,]*$", max_length=100_000)] = ""


class AnchorReport(Struct, frozen=True, kw_only=True):
    """`size` entries have arrived there since the daemon started; `problem` says why not more."""

    name: str
    size: int
    problem: str = ""


class CheckpointState(Struct, frozen=True, kw_only=True):
    """`keys` are all public keys, the newest first. `problem` says why none can be made now."""

    origin: str
    keys: list[str]
    newest: StoredCheckpoint | None = None
    problem: str = ""
    anchors: list[AnchorReport] = []


class RotatedKey(Struct, frozen=True):
    key: str


async def state(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    proof = call.services.get(JournalProof)
    signer = await everyday.run(lambda: proof.keys.signer)
    return ok(
        CheckpointState(
            origin=signer.name,
            keys=[key.encode() for key in proof.keys.public],
            newest=await proof.newest(),
            problem=proof.problem,
            anchors=[
                AnchorReport(name=each.anchor.name, size=each.size, problem=each.problem)
                for each in call.services.get(Anchors).states
            ],
        )
    )


async def checkpoint(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(await call.services.get(JournalProof).checkpoint())


async def inclusion(call: ApiCall[WantedInclusion, Nothing]) -> HttpResponse:
    proof = call.services.get(JournalProof)
    return ok(await proof.inclusion(int(call.path["position"]), call.query.size))


async def consistency(call: ApiCall[WantedConsistency, Nothing]) -> HttpResponse:
    return ok(await call.services.get(JournalProof).consistency(call.query.old, call.query.size))


async def bundle(call: ApiCall[WantedBundle, Nothing]) -> HttpResponse:
    query = call.query
    if query.session_id:
        await call.services.get(Sessions).get(call.principal, query.session_id)
    named = [bool(query.session_id), bool(query.run_id), bool(query.last)]
    if named.count(True) != 1:
        raise InvalidInput("name one of session_id, run_id, or first and last")
    if query.last and not 0 <= query.last - query.first < _MOST_POSITIONS:
        raise InvalidInput(f"first and last must be in order, and at most {_MOST_POSITIONS} apart")
    wanted = Disclosure(
        session_id=query.session_id,
        run_id=query.run_id,
        first=query.first,
        last=query.last,
        bodies=query.bodies,
        without=tuple(int(each) for each in query.without.split(",") if each),
    )
    return ok(await call.services.get(JournalProof).bundle(wanted))


async def cosign(call: ApiCall[Nothing, Upload]) -> HttpResponse:
    witness = call.services.find(Witness)
    if witness is None:
        raise NotFound("this daemon is no witness: journal.witness_for names no journal")
    reply = await everyday.run(witness.add_checkpoint, call.body.data)
    return HttpResponse(reply.status, reply.text.encode(), reply.media.encode())


async def rotate(call: ApiCall[Nothing, Nothing]) -> HttpResponse:
    return ok(RotatedKey(await call.services.get(JournalProof).rotate(call.principal)))


ROUTES: tuple[Route[Any, Any], ...] = (
    Route(
        method="GET",
        path="/v1/journal/checkpoint",
        summary="the newest signed checkpoint, and the keys that sign",
        handler=state,
        gives=(Gives(200, CheckpointState),),
    ),
    Route(
        method="POST",
        path="/v1/journal/checkpoint",
        summary="sign a checkpoint over the journal as it is now",
        handler=checkpoint,
        scope="operator",
        gives=(Gives(200, StoredCheckpoint),),
    ),
    Route(
        method="GET",
        path="/v1/journal/proof/{position}",
        summary="prove that an entry stands in the journal at its position",
        handler=inclusion,
        query=WantedInclusion,
        gives=(Gives(200, InclusionProof),),
        errors=(404,),
    ),
    Route(
        method="GET",
        path="/v1/journal/consistency",
        summary="prove that the journal has only grown between two sizes",
        handler=consistency,
        query=WantedConsistency,
        gives=(Gives(200, ConsistencyProof),),
        errors=(409,),
    ),
    Route(
        method="GET",
        path="/v1/journal/bundle",
        summary="entries with their proofs, for somebody without the product",
        handler=bundle,
        scope="owner",
        query=WantedBundle,
        gives=(Gives(200, ProofBundle),),
        errors=(404, 409),
    ),
    Route(
        method="POST",
        path="/v1/journal/key/rotate",
        summary="replace the key that signs checkpoints",
        handler=rotate,
        scope="owner",
        gives=(Gives(200, RotatedKey),),
    ),
    Route(
        method="POST",
        path="/v1/witness/add-checkpoint",
        summary="cosign a checkpoint of a journal that this daemon is a witness of (C2SP)",
        handler=cosign,
        scope=None,
        takes=Takes(b"*/*", MOST_BYTES),
        gives=(Gives(200, media=TEXT_TYPE.encode()),),
        errors=(400, 403, 404, 409, 422),
    ),
)
