"""Weights of `drawn`: a logistic regression on marked tokens, learned the same way every time.

Tokens are drawn from the formats of half of the vendors and stand where tokens stand; the rows that
the rules were tuned on come with them. What is no credential is what has the same shape in those
rows and in code. `python -m bench.redaction_training` prints the table that stands in `drawn`, and
what it finds of the vendors that were held out, whose formats it has not seen.
"""

import math
import random
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.unit.project import test_redaction_figures as figures

from bench import (
    redaction_alike,
    redaction_fresh,
    redaction_kinds,
    redaction_set,
    redaction_vendors,
)
from bench.redaction import SEED, digest, half
from bench.redaction_examples import EXAMPLES
from palyra.core.redaction import (
    drawn,
    formats,
    keywords,
    names,
    shapes,
    spoken,
    values,
    vendor_facts,
)

_PLACES = ("{}", 'token = "{}"', "use {} please", "VALUE={}", 'Client("{}")', "a: {}", "`{}`")
_FACT = re.compile(r"\{(?:(U)|([wbBhxluds])(\d+)(?:-(\d+)|(\+))?)\}")
_ALPHABETS = {
    **redaction_kinds._CLASSES,
    "x": "0123456789abcdefABCDEF",
    "s": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
}
_CODE_WEIGHT = 4.0  # a false alarm costs so many times what a miss does
_ROUNDS, _RIDGE = 40, 0.3


class Example(NamedTuple):
    values: dict[str, float]
    is_credential: bool
    source: str
    learned: bool  # from the half that is tuned on


def _token(form: str, rng: random.Random) -> str:
    def written(part: re.Match[str]) -> str:
        if part[1]:
            return redaction_vendors.drawn("{U}", rng)
        least = int(part[3])
        most = int(part[4]) if part[4] else least + 8 * bool(part[5])
        return "".join(rng.choices(_ALPHABETS[part[2]], k=rng.randint(least, most)))

    return _FACT.sub(written, form)


def _vendors() -> Iterator[tuple[str, str, list[str], bool]]:
    rng = random.Random(SEED)
    for line in vendor_facts.FORMS.split("\n"):
        vendor, _, forms = line.partition(": ")
        for form in forms.split():
            for place in rng.sample(_PLACES, 4):
                token = _token(form, rng)
                yield "vendors", place.format(token), [token], half(vendor) == 0


def _rows() -> Iterator[tuple[str, str, list[str], bool]]:
    for seed in range(2):
        for rows, source in (
            (redaction_kinds.usages, "kinds"),
            (redaction_kinds.look_alikes, "look-alikes"),
            (redaction_kinds.scanned, "scanners"),
            (redaction_kinds.scanned_alike, "look-alikes"),
        ):
            for kind, text, secrets in rows(seed):
                yield source, text, secrets, source == "scanners" or half(kind) == 0
        for row in redaction_vendors.rows(seed):
            yield "services", row.text, [row.secret], half(row.kind) == 0
    for row in redaction_fresh.named(SEED):
        yield "fresh", row.text, [row.secret], redaction_fresh.half(row.kind) == 0
    for kind, text in (*redaction_alike.look_alikes(SEED), *redaction_set.look_alikes(SEED)):
        yield "look-alikes", text, [], redaction_fresh.half(kind) == 0
    for sample in figures.samples():
        yield (
            "given",
            sample["text"],
            sample["secrets"] if sample["label"] == "pos" else [],
            half(sample["kind"]) == 0,
        )
    for path in figures.source_files(1500):
        yield "code", path.read_text(errors="ignore"), [], True
    for text in (*figures.talk(), *figures.LOCKED.values()):
        yield "code", text, [], True


def _texts() -> Iterator[tuple[str, str, list[tuple[int, int]], bool]]:
    for source, text, secrets, learned in (*_vendors(), *_rows()):
        spans = []
        for secret in secrets:
            at = text.find(secret)
            while secret and at >= 0:
                spans.append((at, at + len(secret)))
                at = text.find(secret, at + 1)
        yield source, text, spans, learned


def _marked(text: str) -> Iterator[tuple[int, int, dict[str, float]]]:
    for start, end in formats.runs(text).tokens:
        for marked in drawn.MARKED.finditer(text, start, end):
            counted = drawn.features(marked, any_vendor=True)
            if counted is not None:
                yield *marked.span(), counted


def _spoken(text: str) -> Iterator[tuple[int, int, dict[str, float]]]:
    for keyword in keywords.keywords_in(shapes.lowered(text)):
        if not values.is_name(text, keyword):
            continue
        end = names.end_of_name(text, names.end_of_word(text, keyword))
        kind = names.kind_named(keyword)
        guessed = spoken.guess(text, end, kind) if end is not None else None
        counted = spoken.features(guessed) if guessed is not None else None
        if guessed is not None and counted is not None:
            yield guessed.start, guessed.start + len(guessed.text), counted


def examples(
    look: Callable[[str], Iterator[tuple[int, int, dict[str, float]]]],
) -> Iterator[Example]:
    seen = set()
    for source, text, spans, learned in _texts():
        for start, end, counted in look(text):
            known = (text[start:end], source, tuple(counted.items()))
            if known not in seen:
                seen.add(known)
                is_credential = any(start < b and a < end for a, b in spans)
                if source == "code" and digest(text[start:end]) in EXAMPLES:
                    continue
                yield Example(counted, is_credential, source, learned)


def learn(rows: list[Example]) -> dict[str, float]:
    """Return the weights by Newton's method, with a ridge so that they stay small."""
    features = list(rows[0].values)
    xs = [[row.values[name] for name in features] for row in rows]
    ys = [float(row.is_credential) for row in rows]
    costs = [1.0 if row.is_credential else _CODE_WEIGHT for row in rows]
    size = len(features)
    weights = [0.0] * size
    for _ in range(_ROUNDS):
        slope = [-_RIDGE * weight for weight in weights]
        bend = [[_RIDGE * (i == j) for j in range(size)] for i in range(size)]
        for x, y, cost in zip(xs, ys, costs, strict=True):
            score = sum(a * b for a, b in zip(weights, x, strict=True))
            chance = 1 / (1 + math.exp(-max(-30.0, min(30.0, score))))
            part = cost * chance * (1 - chance)
            held = [(i, value) for i, value in enumerate(x) if value]
            for i, value in held:
                slope[i] += cost * (y - chance) * value
                for j, other in held:
                    bend[i][j] += part * value * other
        step = _solved(bend, slope)
        weights = [weight + each for weight, each in zip(weights, step, strict=True)]
        if max(map(abs, step)) < 1e-4:
            break
    return dict(zip(features, weights, strict=True))


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Return the solution of the linear equations, by elimination."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda at: abs(rows[at][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for j in range(size):
            if j != i:
                factor = rows[j][i] / rows[i][i]
                rows[j] = [a - factor * b for a, b in zip(rows[j], rows[i], strict=True)]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def main() -> None:
    for module, look in (("drawn", _marked), ("spoken", _spoken)):
        rows = list(examples(look))
        weights = learn([row for row in rows if row.learned])
        print(f"{module}:")
        for name, weight in weights.items():
            print(f'    "{name}": {weight:.2f},')
        _tell(rows, weights)


def _tell(rows: list[Example], weights: dict[str, float]) -> None:
    scored = [
        (sum(weights[name] * value for name, value in row.values.items()), row) for row in rows
    ]
    alarms = sorted(score for score, row in scored if row.source == "code")
    print("highest scores in code:", [round(score, 2) for score in alarms[-12:]])
    for sure in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
        parts = []
        for source in dict.fromkeys(row.source for row in rows if row.is_credential):
            found = [
                score > sure
                for score, row in scored
                if row.source == source and row.is_credential and not row.learned
            ]
            if found:
                parts.append(f"{source} {sum(found) / len(found):.3f} of {len(found)}")
        false = [score > sure for score, row in scored if not row.is_credential and not row.learned]
        print(f"above {sure}: {', '.join(parts)}; look-alikes {sum(false)} of {len(false)}")


if __name__ == "__main__":
    main()
