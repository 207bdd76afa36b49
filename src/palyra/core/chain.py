"""The hash chain of a tape. Every field of an entry is covered, length-prefixed, so that no two
entries share an encoding.

Version 2 leaves the global position out, which the Merkle tree proves, and covers the body by its
hash, so that an entry proves itself also where its body is left out. Entries of version 1 are
checked as what they are.
"""

from hashlib import sha256
from struct import Struct as Packer

GENESIS = bytes(32)
NEWEST = 2
_TAG = b"palyra link 2\n"
_HEAD_1 = Packer(">QQqIIIII")
_HEAD = Packer(">QqIIII")


def link(
    prev: bytes,
    *,
    tape: str,
    seq: int,
    time_ms: int,
    run_id: str,
    principal: str,
    kind: str,
    body_hash: bytes,
) -> bytes:
    """Return the hash of an entry, given the hash of the entry before it on the same tape."""
    tape_b, run_b, who_b, kind_b = tape.encode(), run_id.encode(), principal.encode(), kind.encode()
    head = _HEAD.pack(seq, time_ms, len(tape_b), len(run_b), len(who_b), len(kind_b))
    return sha256(b"".join((_TAG, prev, head, tape_b, run_b, who_b, kind_b, body_hash))).digest()


def link_of(
    version: int,
    prev: bytes,
    *,
    tape: str,
    seq: int,
    position: int,
    time_ms: int,
    run_id: str,
    principal: str,
    kind: str,
    body: bytes,
) -> bytes:
    """Return the hash of an entry by the version of its link. Raise ValueError for a version that
    is not known.
    """
    if version == NEWEST:
        return link(
            prev,
            tape=tape,
            seq=seq,
            time_ms=time_ms,
            run_id=run_id,
            principal=principal,
            kind=kind,
            body_hash=sha256(body).digest(),
        )
    if version != 1:
        raise ValueError(f"a link of version {version} is not known")
    tape_b, run_b, who_b, kind_b = tape.encode(), run_id.encode(), principal.encode(), kind.encode()
    head = _HEAD_1.pack(
        seq, position, time_ms, len(tape_b), len(run_b), len(who_b), len(kind_b), len(body)
    )
    return sha256(b"".join((prev, head, tape_b, run_b, who_b, kind_b, body))).digest()
