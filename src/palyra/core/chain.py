"""The hash chain of a tape. Every field of an entry is covered, length-prefixed, so that no two
entries share an encoding.
"""

from hashlib import sha256
from struct import Struct as Packer

GENESIS = bytes(32)
_HEAD = Packer(">QQqIIIII")


def link(
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
    """The hash of an entry, given the hash of the entry before it on the same tape."""
    tape_b, run_b, who_b, kind_b = tape.encode(), run_id.encode(), principal.encode(), kind.encode()
    head = _HEAD.pack(
        seq, position, time_ms, len(tape_b), len(run_b), len(who_b), len(kind_b), len(body)
    )
    return sha256(b"".join((prev, head, tape_b, run_b, who_b, kind_b, body))).digest()
