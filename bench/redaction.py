"""What redaction finds, what it spares and what it costs: samples of public scanners, code and talk at hand, chunks and deltas.

Run: python bench/redaction.py
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.unit import test_redaction_figures as figures

from palyra.domain.redaction import Redactor

CHAT = (
    "The quick brown fox leaps over the lazy dog, 3 times; it is fun to see (really) how far it goes. Then we go on: "
    "see chapter 4 for the details on what comes next, please. And so on, and so forth, ok? Fine then. Good."
)


def microseconds(work: Callable[[], object], times: int) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(times):
            work()
        best = min(best, time.process_time() - start)
    return best / times * 1e6


def quality() -> None:
    rows = figures.samples()
    random.Random(7).shuffle(rows)
    for name, part in (("all", rows), ("one half", rows[: len(rows) // 2]), ("other half", rows[len(rows) // 2 :])):
        print(f"{name:11} secrets gone {figures.recall(part):.3f}   look-alikes touched {figures.touched(part):.3f}")
    for source in sorted({row["source"] for row in rows}):
        part = [row for row in rows if row["source"] == source]
        negative = f"{figures.touched(part):.3f}" if any(row["label"] == "neg" for row in part) else "-"
        print(f"{source:11} secrets gone {figures.recall(part):.3f}   look-alikes touched {negative}")


def spared() -> None:
    for name, texts in (
        ("code", (path.read_text(errors="ignore") for path in figures.source_files(1500))),
        ("talk", figures.talk()),
    ):
        lines, hit = figures.touched_lines(texts)
        print(f"{name:11} lines {lines}   touched {hit}   per thousand {hit / lines * 1000:.3f}")


def speed() -> None:
    redactor = Redactor(b"bench")
    code = "".join(path.read_text(errors="ignore") for path in figures.source_files(400) if path.suffix == ".py")[: figures.MIB]
    chunks = [code[at : at + 200] for at in range(0, len(code), 200)]
    deltas = [f" {word}" for word in CHAT.split()] * 20
    print(f"200 characters of chat   {microseconds(lambda: redactor.redact(CHAT[:200]), 2000):8.2f} us")
    print(f"200 characters of code   {microseconds(lambda: [redactor.redact(chunk) for chunk in chunks], 1) / len(chunks):8.2f} us")
    print(f"one delta of a stream    {microseconds(lambda: list(map(redactor.stream().feed, deltas)), 10) / len(deltas):8.2f} us")
    print(f"1 MiB of code            {microseconds(lambda: redactor.redact(code), 1) / 1000:8.1f} ms")
    worst, name = max(
        (microseconds(lambda text=text: redactor.redact(text), 1) / 1e6, name) for name, text in figures.HOSTILE.items()
    )
    print(f"1 MiB of hostile text    {worst:8.2f} s at most ({name})")


if __name__ == "__main__":
    quality()
    spared()
    speed()
