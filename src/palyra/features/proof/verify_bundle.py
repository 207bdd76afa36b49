#!/usr/bin/env python3
"""Check a Palyra proof bundle offline. Needs Python 3.9 or newer and nothing else.

    python3 verify_bundle.py BUNDLE.json [--key KEY ...]

A bundle proves that its entries stand in a journal, unchanged and in this order, as its signed
checkpoint says. The keys in a bundle are its own claim: name the key that the owner gave you with
--key, else anybody could have made this bundle for a journal of their own.
Formats: RFC 6962 Merkle tree; C2SP signed-note and tlog-checkpoint with Ed25519 (RFC 8032).
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import struct
import sys
from collections.abc import Iterator
from typing import Any

# Ed25519, verification only, as RFC 8032 section 5.1.7 says.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]
Key = tuple[str, bytes, int, bytes]
# What an entry must have, and of which type: 1.0 and true are no numbers here.
ENTRY = {"position": int, "seq": int, "time_ms": int, "link": int, "tape": str, "principal": str}
ENTRY |= {"kind": str, "hash": str, "prev": str, "proof": list}
ENDS = ("run.completed", "run.failed", "run.cancelled")


def add(p: Point, q: Point) -> Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(number: int, point: Point) -> Point:
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = add(result, point)
        point = add(point, point)
        number >>= 1
    return result


def decompress(data: bytes) -> Point | None:
    """Return the point of 32 bytes, or None if there is none."""
    number = int.from_bytes(data, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    if y >= P:
        return None
    squared = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(squared, (P + 3) // 8, P)
    if (x * x - squared) % P:
        x = x * ROOT % P
    if (x * x - squared) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


BASE = decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")) or (0, 1, 1, 0)


def ed25519(public: bytes, message: bytes, signature: bytes) -> bool:
    """Say if a signature is good."""
    if len(public) != 32 or len(signature) != 64:
        return False
    a, r = decompress(public), decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    k = int.from_bytes(digest, "little") % L
    p, q = times(s, BASE), add(r, times(k, a))
    return not any((p[at] * q[2] - q[at] * p[2]) % P for at in (0, 1))


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


class Refuted(Exception):
    """Error: something that a bundle says does not hold."""


def need(holds: bool, problem: str) -> None:
    if not holds:
        raise Refuted(problem)


def unhex(text: str) -> bytes:
    need(bytes.fromhex(text).hex() == text, "a hash is malformed")
    return bytes.fromhex(text)


def unbase64(text: str) -> bytes:
    data = base64.b64decode(text)
    need(base64.b64encode(data).decode() == text, "a key, a root or a signature is malformed")
    return data


def read_key(text: str) -> Key:
    """Return (name, key id, algorithm, public bytes) of a key NAME+ID+BASE64."""
    name, _, rest = text.partition("+")
    key_id, _, packed = rest.partition("+")
    body = unbase64(packed)
    found = sha256(name.encode() + b"\n" + body)[:4]
    need(len(body) == 33 and found.hex() == key_id, f"this is not a key: {text[:80]}")
    return name, found, body[0], body[1:]


def read_note(note: str) -> tuple[str, list[tuple[str, bytes, bytes]]]:
    """Return the text of a note, and its signatures as (name, key id, signature)."""
    head, gap, below = note.rpartition("\n\n")
    need(bool(gap) and below.endswith("\n"), "the checkpoint is no signed note")
    signatures = []
    for line in below[:-1].split("\n"):
        dash, name, packed = line.split(" ")
        body = unbase64(packed)
        need(dash == "\u2014", "a signature line of the checkpoint is malformed")
        signatures.append((name, body[:4], body[4:]))
    return head + "\n", signatures


def signed(note: str, key: Key) -> bool:
    """Say if a note has a good signature of a key."""
    text, signatures = read_note(note)
    name, key_id, algorithm, public = key
    message = text.encode()
    for who, which, signature in signatures:
        if (who, which) != (name, key_id):
            continue
        if algorithm == 4:
            time = struct.unpack(">Q", signature[:8])[0]
            message = b"cosignature/v1\ntime %d\n" % time + message
        return ed25519(public, message, signature[-64:])
    return False


def replaced(trusted: list[Key], rotations: list[str]) -> list[Key]:
    """Return the trusted keys with those that they have signed for, by notes of rotation."""
    keys = list(trusted)
    for note in rotations:
        lines = read_note(note)[0].split("\n")[:-1]
        if len(lines) != 3 or lines[0] != "palyra key rotation 1":
            raise Refuted("a note of key rotation is malformed")
        old, new = read_key(lines[1]), read_key(lines[2])
        if old in keys and signed(note, old) and signed(note, new):
            keys.append(new)
    return keys


def root_of(index: int, size: int, leaf: bytes, proof: list[bytes]) -> bytes:
    """Return the root that an audit path leads to, as RFC 9162 section 2.1.3.2 says."""
    at, last, found = index, size - 1, leaf
    for each in proof:
        need(last != 0, "an audit path is too long")
        if at & 1 or at == last:
            found = sha256(b"\x01" + each + found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = sha256(b"\x01" + found + each)
        at, last = at >> 1, last >> 1
    need(last == 0, "an audit path is too short")
    return found


def link(entry: Any) -> bytes:
    """Return the hash of an entry from its content."""
    texts = [entry["tape"], entry.get("run_id", ""), entry["principal"], entry["kind"]]
    texts = [each.encode() for each in texts]
    lengths = [len(each) for each in texts]
    body = entry.get("body")
    if entry["link"] == 2:
        digest = unhex(entry["body_sha256"]) if body is None else sha256(body.encode())
        head = struct.pack(">QqIIII", entry["seq"], entry["time_ms"], *lengths)
        parts = [b"palyra link 2\n", unhex(entry["prev"]), head, *texts, digest]
    elif entry["link"] == 1 and body is not None:
        sizes = [*lengths, len(body.encode())]
        head = struct.pack(">QQqIIIII", entry["seq"], entry["position"], entry["time_ms"], *sizes)
        parts = [unhex(entry["prev"]), head, *texts, body.encode()]
    else:
        raise Refuted(f"entry {entry['position']} has link version 1: only its body proves it")
    return sha256(b"".join(parts))


def check_entries(entries: Any, size: int, root: bytes) -> tuple[int, int]:
    """Check every entry; return how many are proven with content, and how many by hash alone."""
    heads: dict[str, tuple[int, str]] = {}
    seen = proven = sealed = 0
    for entry in entries:
        where = f"entry {entry['position']}"
        sound = all(type(entry[name]) is kind for name, kind in ENTRY.items())
        need(sound, f"{where} is malformed")
        need(seen < entry["position"] <= size, f"{where} is out of order or not in the checkpoint")
        seen = entry["position"]
        digest = link(entry)
        need(digest.hex() == entry["hash"], f"{where} was changed: its hash is another")
        shown = entry.get("body") is not None
        kind = json.loads(entry["body"]).get("kind") if shown else entry["kind"]
        need(kind == entry["kind"], f"{where} says another kind than its body")
        before = heads.get(entry["tape"])
        if before is not None and before != (entry["seq"] - 1, entry["prev"]):
            raise Refuted(f"{where} does not follow the one before it: entries are missing")
        heads[entry["tape"]] = (entry["seq"], entry["hash"])
        leaf = sha256(b"\x00" + bytes([entry["link"]]) + digest)
        if root_of(entry["position"] - 1, size, leaf, list(map(unhex, entry["proof"]))) != root:
            raise Refuted(f"{where} is not in the journal at this position")
        proven, sealed = proven + shown, sealed + (not shown)
    return proven, sealed


def check_scope(about: Any, entries: Any) -> None:
    """Check that the bundle holds what it says it is about, without a gap."""
    session, run = about.get("session_id", ""), about.get("run_id", "")
    if not entries or not isinstance(session, str) or not isinstance(run, str):
        raise Refuted("the bundle has no entries, or does not say what it is about")
    need(not session or entries[0]["seq"] == 1, "the session does not begin with its first entry")
    tapes = {each["tape"] for each in entries}
    if (session and tapes != {session}) or (run and len(tapes) != 1):
        raise Refuted("the bundle has entries of another session")
    if run and (entries[0]["kind"] != "run.accepted" or entries[0].get("run_id") != run):
        raise Refuted("the run does not begin with its first entry")
    if not session and not run:
        positions = [each["position"] for each in entries]
        first, last = about["first"], about["last"]
        if type(first) is not int or positions != list(range(first, last + 1)):
            raise Refuted("positions are missing between")


def check_policies(bundle: Any) -> Iterator[str]:
    """Return under which policies calls were decided. A version is the digest of its texts."""
    known = set()
    for each in bundle["policies"]:
        parts = [file[name].encode() for file in each["files"] for name in ("name", "text")]
        data = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        need(sha256(data).hex() == each["version"], "policies are not those of their version")
        known.add(each["version"])
    shown = (json.loads(each["body"]) for each in bundle["entries"] if each.get("body"))
    decided = {each.get("policy_version") for each in shown if each["kind"] == "tool.decided"}
    for version in sorted(decided - {None, ""}):
        told = "whose texts are here" if version in known else "WARNING: whose texts are not here"
        yield f"calls were decided by policies {version[:16]}, {told}"


def check(bundle: Any, trusted: list[str]) -> Iterator[str]:
    """Return sentences about what is proven. Raise Refuted if the bundle is not what it says."""
    need(bundle.get("format") == "palyra-proof-1", "this is no proof bundle of a known version")
    lists = all(type(bundle[it]) is list for it in ("keys", "rotations", "entries", "policies"))
    need(lists, "the bundle is malformed")
    note = bundle["checkpoint"]
    lines = read_note(note)[0].split("\n")
    origin, size, root = lines[0], int(lines[1]), unbase64(lines[2])
    need(str(size) == lines[1], "the checkpoint is malformed")
    own = [read_key(each) for each in bundle["keys"]]
    keys = replaced([read_key(each) for each in trusted], bundle["rotations"]) or own
    signers = [key for key in keys if signed(note, key)]
    need(bool(signers), "the checkpoint is not signed by a key that is trusted")
    proven, sealed = check_entries(bundle["entries"], size, root)
    check_scope(bundle["about"], bundle["entries"])
    policies, run = list(check_policies(bundle)), bundle["about"].get("run_id")
    yield f"signed by {', '.join(key[0] for key in signers)} for {size} entries of {origin}"
    yield f"{proven} entries proven with their content, {sealed} by their hash alone"
    yield "nothing is missing between the first and the last of them"
    if run:
        ended = run in [each.get("run_id") for each in bundle["entries"] if each["kind"] in ENDS]
        yield "the run is complete" if ended else "the run had not ended"
    yield from policies
    if not trusted:
        yield "WARNING: the key is the bundle's own claim; check it with --key"


def main(arguments: list[str]) -> int:
    wanted = argparse.ArgumentParser(description="Check a Palyra proof bundle offline.")
    wanted.add_argument("bundle")
    wanted.add_argument("--key", action="append", default=[])
    given = wanted.parse_args(arguments)
    try:
        with open(given.bundle, encoding="utf-8") as file:
            told = list(check(json.load(file, parse_constant=unhex), given.key))
    except Exception as error:  # noqa: BLE001  whatever cannot be read is not proven
        unread = f"the bundle cannot be read: {type(error).__name__}: "
        print(f"NOT PROVEN: {'' if isinstance(error, Refuted) else unread}{error}")
        return 1
    print("PROVEN: " + "\n        ".join(told))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
