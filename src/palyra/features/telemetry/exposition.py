"""Metrics for OTLP, read from the exposition for Prometheus: there is one list of metrics."""

import re
from collections.abc import Iterable, Iterator

from palyra.features.telemetry.otlp import MetricFamily, MetricPoint

_SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def families_of(text: str) -> Iterator[MetricFamily]:
    """Return the metrics of an exposition that `palyra.api.metrics` made."""
    about, name, kind = "", "", ""
    samples: list[tuple[str, dict[str, str], float]] = []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            if samples:
                yield _family(name, about, kind, samples)
            samples = []
            name, _, about = line[7:].partition(" ")
        elif line.startswith("# TYPE "):
            kind = line.rpartition(" ")[2]
        elif found := _SAMPLE.fullmatch(line):
            labels = {key: _ESCAPED.sub(_plain, value) for key, value in _labels(found[2])}
            samples.append((found[1], labels, float(found[3])))
    if samples:
        yield _family(name, about, kind, samples)


def _labels(text: str | None) -> Iterable[tuple[str, str]]:
    return _LABEL.findall(text or "")


def _plain(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]


def _family(
    name: str, about: str, kind: str, samples: list[tuple[str, dict[str, str], float]]
) -> MetricFamily:
    if kind == "histogram":
        return MetricFamily(name, about, "histogram", tuple(_histograms(name, samples)))
    points = tuple(MetricPoint(labels, value) for _, labels, value in samples)
    return MetricFamily(name, about, "counter" if kind == "counter" else "gauge", points)


def _histograms(
    name: str, samples: list[tuple[str, dict[str, str], float]]
) -> Iterator[MetricPoint]:
    """Put the lines of each histogram together: buckets count everything up to their bound."""
    counts: list[int] = []
    bounds: list[float] = []
    total, seen = 0.0, 0
    for each, labels, value in samples:
        if each == f"{name}_bucket":
            bound = labels["le"]
            counts.append(int(value) - seen)
            seen = int(value)
            if bound != "+Inf":
                bounds.append(float(bound))
        elif each == f"{name}_sum":
            total = value
        else:
            yield MetricPoint(labels, total, tuple(counts), tuple(bounds))
            counts, bounds, seen = [], [], 0
