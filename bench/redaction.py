"""Benchmark of redaction: what it finds, what it spares and what it costs.

Recall is cross-validated: the kinds of secrets are split in two by a hash of their name, whoever
tunes looks at one half only, and both are printed. Beside the given rows there are usages of
services (`redaction_vendors`), generated rows (`redaction_set`), plain and in disguise, and fresh
rows in the manner of scanners' test suites (`redaction_fresh`, `redaction_alike`). Usages in the
wild (`redaction_wild.txt`) were written without a look at the rules; their first run found 0.885 of
the first half and 0.867 of the second, whose rows nobody has read since.

A line of code or documentation that is touched is a false alarm unless what was taken is an example
of a credential: it was read and stands where a credential stands (`redaction_examples`).
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from tests.unit.project import test_redaction_figures as figures

from bench import (
    redaction_alike,
    redaction_fresh,
    redaction_kinds,
    redaction_set,
    redaction_vendors,
)
from bench.common import Table
from bench.redaction_examples import EXAMPLES
from bench.redaction_set import DISGUISES, Row
from palyra.serve.trials import pathological
from palyra.system.redactor import Redactor

CHAT = (
    "The quick brown fox leaps over the lazy dog, 3 times; it is fun to see (really) how far it"
    " goes. Then we go on: see chapter 4 for the details on what comes next, please. And so on, and"
    " so forth, ok? Fine then. Good."
)
REDACTOR = Redactor(b"bench")
SEED = 20260
_HOSTILE = 256 << 10
_DRAWS = 4  # of every usage of a service: some draws are harder than others


def half(kind: str) -> int:
    """Return which half a kind belongs to, always."""
    return hashlib.sha256(kind.encode()).digest()[0] & 1


def is_gone(row: Row) -> bool:
    """Return whether neither the secret nor, if a break splits it, one of its parts is left."""
    out = REDACTOR.redact(row.text)
    return row.secret not in out and not any(
        part.rstrip("\\") in out for part in row.secret.split("\n") if len(part) > 6
    )


def share(found: list[bool]) -> str:
    return f"{sum(found) / len(found):.3f}" if found else "-"


def _given(row: dict[str, Any]) -> list[Row]:
    """The secrets of a given row that can be disguised."""
    return [
        Row(row["kind"], "given", row["text"], secret)
        for secret in row["secrets"]
        if 8 <= len(secret) < 300 and secret in row["text"] and not any(map(str.isspace, secret))
    ]


def quality() -> Iterator[Table]:
    rows = figures.samples()
    halves = [[row for row in rows if half(row["kind"]) == side] for side in (0, 1)]
    held = figures.contradicted(rows)
    lines = [
        (
            name,
            str(len(part)),
            f"{figures.recall(part):.3f}",
            f"{figures.touched(part):.3f}",
            f"{figures.touched([row for row in part if row not in held]):.3f}",
        )
        for name, part in (
            ("first half of the kinds", halves[0]),
            ("second half", halves[1]),
            ("all", rows),
        )
    ]
    yield Table(
        f"Redaction: given rows ({len(held)} look-alikes hold a secret of another row)",
        ("rows", "number", "secrets gone", "look-alikes touched", "without those"),
        lines,
    )
    used = [row for seed in range(_DRAWS) for row in redaction_vendors.rows(seed)]
    lines = []
    for name, side in (("first half of the services", 0), ("second half", 1)):
        part = [row for row in used if half(row.kind) == side]
        lines.append((name, str(len(part) // _DRAWS), share([is_gone(row) for row in part])))
    yield Table(
        "Redaction: services, as their manuals show them", ("rows", "number", "secrets gone"), lines
    )
    yield from fresh()
    yield from kinds()
    yield from scanners()
    made = [*redaction_set.named(SEED), *redaction_set.placed(SEED)]
    given = [each for row in rows if row["label"] == "pos" for each in _given(row)]
    lines = []
    for name in ("as they are", *DISGUISES):
        worn = [
            part if name == "as they are" else redaction_set.disguised(part, name)
            for part in (given, made)
        ]
        sides = [
            share([is_gone(row) for row in worn[0] if half(row.kind) == side]) for side in (0, 1)
        ]
        lines.append((name, *sides, share([is_gone(row) for row in worn[1]])))
    columns = ("written", "given, first half", "given, second half", "generated")
    yield Table("Redaction: secrets gone by disguise", columns, lines)


def fresh() -> Iterator[Table]:
    """Yield the figures of generated rows by half: the rules were tuned on the first one only."""
    made = {
        "samples of detectors": redaction_fresh.named(SEED),
        "accounts in notes": redaction_fresh.paired(SEED),
        "passwords in grammars": redaction_fresh.placed(SEED),
        "lines of keys": redaction_fresh.key_lines(SEED),
    }
    lines = []
    everything: tuple[list[bool], list[bool]] = ([], [])
    for name, rows in made.items():
        sides: tuple[list[bool], list[bool]] = ([], [])
        for row in rows:
            sides[redaction_fresh.half(row.kind)].append(is_gone(row))
        for side in (0, 1):
            everything[side].extend(sides[side])
        lines.append((name, *(f"{share(side)} of {len(side)}" for side in sides)))
    lines.append(("all", *(f"{share(side)} of {len(side)}" for side in everything)))
    alike: tuple[list[bool], list[bool]] = ([], [])
    for kind, text in redaction_alike.look_alikes(SEED):
        alike[redaction_fresh.half(kind)].append(REDACTOR.redact(text) is not text)
    lines.append(("look-alikes touched", *(f"{share(side)} of {len(side)}" for side in alike)))
    yield Table(
        "Redaction: fresh rows, secrets gone",
        ("rows", "first half, tuned on", "second half, held out"),
        lines,
    )


def kinds() -> Iterator[Table]:
    """Yield the figures of usages by kind: the rules were tuned on the first half only."""
    yield _by_kind("usages by kind", redaction_kinds.usages, redaction_kinds.look_alikes)
    yield _by_kind("usages in the wild", redaction_kinds.wild, redaction_kinds.wild_alike)


def _by_kind(title: str, usages: redaction_kinds.Rows, look_alikes: redaction_kinds.Rows) -> Table:
    sides: tuple[list[bool], list[bool]] = ([], [])
    alike: tuple[list[bool], list[bool]] = ([], [])
    for seed in range(_DRAWS):
        for kind, text, secrets in usages(seed):
            out = REDACTOR.redact(text)
            sides[half(kind)].extend(redaction_kinds.is_gone(secret, out) for secret in secrets)
        for kind, text, _ in look_alikes(seed):
            alike[half(kind)].append(REDACTOR.redact(text) is not text)
    return Table(
        f"Redaction: {title}",
        ("rows", "first half of the kinds, tuned on", "second half, held out"),
        [
            (name, *(f"{share(side)} of {len(side) // _DRAWS}" for side in pair))
            for name, pair in (("secrets gone", sides), ("look-alikes touched", alike))
        ],
    )


def scanners() -> Iterator[Table]:
    """Yield the figures of rows in the manner of scanners' tests."""
    lines = []
    for name, rows in (
        ("written first, the rules tuned on all", redaction_kinds.scanned),
        ("written last", redaction_kinds.scanned_last),
    ):
        found = [
            redaction_kinds.is_gone(secret, REDACTOR.redact(text))
            for seed in range(_DRAWS)
            for _, text, secrets in rows(seed)
            for secret in secrets
        ]
        lines.append((name, f"{share(found)} of {len(found) // _DRAWS}"))
    alike = [
        REDACTOR.redact(text) is not text
        for seed in range(_DRAWS)
        for _, text, _ in redaction_kinds.scanned_alike(seed)
    ]
    lines.append(("look-alikes touched", f"{share(alike)} of {len(alike) // _DRAWS}"))
    yield Table("Redaction: in the manner of scanners' tests", ("rows", "secrets gone"), lines)


class Touched(NamedTuple):
    """Lines of a text, and those in which something was taken: examples of credentials, and false
    alarms.
    """

    lines: int
    examples: int
    alarms: int

    def row(self, name: str) -> tuple[str, ...]:
        return (
            name,
            f"{self.lines:,}",
            str(self.examples),
            str(self.alarms),
            f"{self.alarms / self.lines * 1000:.3f}",
        )


def digest(value: str) -> str:
    """Return the name of a value in `redaction_examples`, so that the file holds none."""
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()[:10]


def touched(texts: Iterable[str]) -> Touched:
    count = examples = alarms = 0
    for text in texts:
        count += text.count("\n") + 1
        known: set[int] = set()
        others: set[int] = set()
        for found in REDACTOR.find(text):
            lines = range(text.count("\n", 0, found.start), text.count("\n", 0, found.end - 1) + 1)
            (known if digest(text[found.start : found.end]) in EXAMPLES else others).update(lines)
        examples += len(known - others)
        alarms += len(others)
    return Touched(count, examples, alarms)


def spared() -> Iterator[Table]:
    code = (path.read_text(errors="ignore") for path in figures.source_files(1500))
    texts = {
        "code and documents": code,
        "talk": figures.talk(),
        "lock files": iter(figures.LOCKED.values()),
    }
    lines = [touched(each).row(name) for name, each in texts.items()]
    alike = [text for _, text in redaction_set.look_alikes(SEED)]
    hit = sum(REDACTOR.redact(text) is not text for text in alike)
    lines.append(
        ("generated look-alikes", str(len(alike)), "0", str(hit), f"{hit / len(alike) * 1000:.3f}")
    )
    yield Table(
        "Redaction: false alarms",
        ("text", "lines", "examples of credentials", "false alarms", "per thousand"),
        lines,
    )


def _seconds(work: Callable[[], object], times: int = 1) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(times):
            work()
        best = min(best, time.process_time() - start)
    return best / times


def speed() -> Iterator[Table]:
    code = "".join(
        path.read_text(errors="ignore")
        for path in figures.source_files(400)
        if path.suffix == ".py"
    )[: figures.MIB]
    locked = "".join(figures.LOCKED.values())[: figures.MIB]
    texts = {"code": code, "chat": CHAT * (figures.MIB // len(CHAT)), "lock files": locked}
    lines = [
        (name, f"{len(text) / _seconds(lambda text=text: REDACTOR.find(text)) / 1e6:.1f} MB/s")
        for name, text in texts.items()
    ]
    deltas = [f" {word}" for word in CHAT.split()] * 20
    lines.append(
        (
            "200 characters of chat",
            f"{_seconds(lambda: Redactor(b'k').spans(CHAT[:200]), 2000) * 1e6:.1f} us",
        )
    )
    lines.append(
        (
            "one delta of a stream",
            (
                f"{_seconds(lambda: list(map(REDACTOR.stream().feed, deltas)), 10) / len(deltas) * 1e6:.1f} us"  # noqa: E501
            ),
        )
    )
    verdicts = [pathological.judge(case) for case in pathological.CASES if case.part == "redaction"]
    worst = max(verdicts, key=lambda each: each.ratio)
    lines.append(
        (
            f"worst of {len(verdicts)} hostile texts: {worst.case.what}",
            f"{worst.ratio:.1f} x plain text",
        )
    )
    yield Table("Redaction: speed, one thread", ("text", "speed"), lines)


async def _gap(text: str) -> float:
    """The longest time in which the event loop did nothing while the redactor read `text` on
    another thread, as in the daemon.

    It is processor time of this process, so that others on the same machine do not count.
    """
    redactor = Redactor(b"bench")
    reading = asyncio.ensure_future(redactor.redacted(text))
    longest, last = 0.0, time.process_time()
    while not reading.done():
        await asyncio.sleep(0)
        now = time.process_time()
        longest, last = max(longest, now - last), now
    await reading
    return longest


def gaps() -> Iterator[Table]:
    cases = [case for case in pathological.CASES if case.part == "redaction"]
    found: list[tuple[float, str]] = []
    for case in cases:
        text = case.text(_HOSTILE)
        found.append((min(asyncio.run(_gap(text)) for _ in range(2)), case.what))
    longest, what = max(found)
    name = f"{len(cases)} hostile texts of {_HOSTILE >> 10} KiB; the worst: {what}"
    yield Table(
        "Redaction: longest gap of the event loop",
        ("text", "gap"),
        [(name, f"{longest * 1000:.0f} ms")],
    )


def tables() -> Iterator[Table]:
    yield from quality()
    yield from spared()
    yield from speed()
    yield from gaps()
