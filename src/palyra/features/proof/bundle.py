"""A bundle: entries with everything by which a stranger checks them, without the product.

The rule: what is left out is only ever a body. Every entry of a stretch is there with its hash, so
nothing is missing between, and what is shown is what was signed for.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Literal

from msgspec import Struct

from palyra.core import events
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.core.events import ToolDecided
from palyra.features.proof import rows
from palyra.features.proof.rows import BundleRow
from palyra.store import policy_sets, runs, tape, tree
from palyra.store.database import Tx
from palyra.store.log_keys import LogKeys
from palyra.store.policy_sets import PolicyTexts

FORMAT: Literal["palyra-proof-1"] = "palyra-proof-1"
REDACTION = (
    "Secrets were replaced by placeholders before an entry was written, so the bodies are as the"
    " journal and the model had them. An entry with body_sha256 in place of body was disclosed"
    " without its content."
)


class Disclosure(Struct, frozen=True, kw_only=True):
    """Scope of a bundle: a session, a run, or positions from `first` to `last`. `without` are
    positions whose bodies are left out, `bodies` leaves out all if it is false.
    """

    session_id: str = ""
    run_id: str = ""
    first: int = 0
    last: int = 0
    bodies: bool = True
    without: tuple[int, ...] = ()


class BundledEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry. `prev` is the hash before it on its tape; `proof` is its path to the root of the
    checkpoint. `body` or `body_sha256` is there, never both.
    """

    position: int
    tape: str
    seq: int
    time_ms: int
    run_id: str = ""
    principal: str
    kind: str
    link: int
    hash: str
    prev: str
    proof: tuple[str, ...]
    body: str | None = None
    body_sha256: str = ""


class ProofBundle(Struct, frozen=True, kw_only=True):
    """`tool.decided` entries name the version of the policies that decided, which is a digest of
    their texts; `policies` are these, and those of `policy_version`, which are in force when the
    bundle is made.
    """

    format: Literal["palyra-proof-1"] = FORMAT
    about: Disclosure
    made_ms: int
    checkpoint: str
    checkpoint_ms: int
    keys: tuple[str, ...]
    rotations: tuple[str, ...]
    entries: tuple[BundledEntry, ...]
    policy_version: str = ""
    policies: tuple[PolicyTexts, ...] = ()
    redaction: str = REDACTION


def make(
    tx: Tx,
    keys: LogKeys,
    wanted: Disclosure,
    in_force: PolicyTexts | None = None,
) -> ProofBundle:
    """Collect a bundle under the newest checkpoint. Raise NotFound if there is nothing that a
    checkpoint covers.
    """
    found = _stretch(tx, wanted)
    newest = tree.newest_checkpoint(tx)
    if newest is None or not found or found[-1].position > newest.size:
        raise NotFound("there is nothing to prove, or no checkpoint covers it yet")
    shown = _shown(wanted)
    grown = tree.stored(tx)
    return ProofBundle(
        about=wanted,
        made_ms=tx.now_ms,
        checkpoint=newest.note,
        checkpoint_ms=newest.time_ms,
        keys=tuple(key.encode() for key in keys.public),
        rotations=tuple(keys.rotations),
        entries=tuple(
            _bundled(row, grown.inclusion(row.position - 1, newest.size), shown(row))
            for row in found
        ),
        policy_version=in_force.version if in_force else "",
        policies=tuple(_policies(tx, filter(shown, found), in_force)),
    )


def _policies(
    tx: Tx, shown: Iterable[BundleRow], in_force: PolicyTexts | None
) -> Iterator[PolicyTexts]:
    """The policies that decided what is shown, as far as their texts were kept."""
    if in_force is not None:
        yield in_force
    decisions = (events.decode(row.body) for row in shown if row.kind == "tool.decided")
    named = {each.policy_version for each in decisions if isinstance(each, ToolDecided)}
    for version in sorted(named - {in_force.version if in_force else ""}):
        if (kept := policy_sets.find(tx, version)) is not None:
            yield kept


def _stretch(tx: Tx, wanted: Disclosure) -> list[BundleRow]:
    """The entries in the order of their positions, without a gap on any tape."""
    if wanted.run_id:
        run = runs.find(tx, wanted.run_id)
        if run is None:
            raise NotFound(f"there is no run {wanted.run_id}", run_id=wanted.run_id)
        return rows.of_run(tx, run.session_id, wanted.run_id)
    if wanted.session_id:
        return rows.of_tape(tx, wanted.session_id)
    found = rows.between(tx, wanted.first, wanted.last)
    last = min(wanted.last, tape.last_position(tx))
    if sealed := {*range(wanted.first, last + 1)} - {each.position for each in found}:
        raise Conflict(
            f"the entry at {min(sealed)} lies in a sealed session: bring it back first with"
            " `palyra sessions restore`",
            position=min(sealed),
        )
    return found


def _shown(wanted: Disclosure) -> Callable[[BundleRow], bool]:
    without = frozenset(wanted.without)

    def shown(row: BundleRow) -> bool:
        # What stands between the entries of a run and is of another one is nobody's business.
        other = bool(wanted.run_id) and row.run_id != wanted.run_id
        hidden = other or not wanted.bodies or row.position in without
        # An entry of link version 1 proves nothing without its body.
        if hidden and row.link == 1:
            raise InvalidInput(
                f"the body of entry {row.position} cannot be left out: it is from before bodies"
                " were hashed on their own",
                position=row.position,
            )
        return not hidden

    return shown


def _bundled(row: BundleRow, proof: Sequence[bytes], shown: bool) -> BundledEntry:
    return BundledEntry(
        position=row.position,
        tape=row.tape,
        seq=row.seq,
        time_ms=row.time_ms,
        run_id=row.run_id,
        principal=row.principal,
        kind=row.kind,
        link=row.link,
        hash=row.hash.hex(),
        prev=row.prev.hex(),
        proof=tuple(each.hex() for each in proof),
        body=row.body.decode() if shown else None,
        body_sha256="" if shown else sha256(row.body).hexdigest(),
    )
