"""Messages of OTLP in protobuf: just those that are sent, field by field as opentelemetry-proto
numbers them.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

Value = str | bool | int | float | tuple[str, ...]
Attributes = Mapping[str, Value]

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_ERROR = 2
_CUMULATIVE = 2

INTERNAL, SERVER, CLIENT, CONSUMER = 1, 2, 3, 5


class TraceEvent(NamedTuple):
    time_ns: int
    name: str
    attributes: Attributes = {}


class TraceLink(NamedTuple):
    trace_id: bytes
    span_id: bytes
    attributes: Attributes = {}


class TraceSpan(NamedTuple):
    """One span. `error` is what went wrong, if anything did."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Attributes
    events: tuple[TraceEvent, ...] = ()
    links: tuple[TraceLink, ...] = ()
    error: str = ""


class MetricPoint(NamedTuple):
    """One point of a metric. A histogram has `counts` for each bucket, the last one without a
    bound, and `value` as its sum.
    """

    attributes: Attributes
    value: float
    counts: tuple[int, ...] = ()
    bounds: tuple[float, ...] = ()


class MetricFamily(NamedTuple):
    name: str
    about: str
    kind: Literal["counter", "gauge", "histogram"]
    points: tuple[MetricPoint, ...]


class LogLine(NamedTuple):
    time_ns: int
    severity: int
    level: str
    logger: str
    text: str


def traces(resource: Attributes, version: str, spans: Iterable[TraceSpan]) -> bytes:
    """Return an ExportTraceServiceRequest."""
    return _request(resource, version, map(_span, spans))


def metrics(
    resource: Attributes, version: str, families: Iterable[MetricFamily], since_ns: int, now_ns: int
) -> bytes:
    """Return an ExportMetricsServiceRequest. Counters and histograms count from `since_ns` on."""
    return _request(resource, version, (_metric(each, since_ns, now_ns) for each in families))


def logs(resource: Attributes, version: str, lines: Iterable[LogLine]) -> bytes:
    """Return an ExportLogsServiceRequest."""
    return _request(resource, version, map(_log, lines))


def _request(resource: Attributes, version: str, items: Iterable[bytes]) -> bytes:
    # The three requests have one shape: a resource, a scope in it, and in that what is reported.
    scope = _text(1, "palyra") + _text(2, version)
    inside = _part(1, scope) + b"".join(_part(2, each) for each in items)
    return _part(1, _part(1, _attributes(1, resource)) + _part(2, inside))


def _span(span: TraceSpan) -> bytes:
    return b"".join(
        (
            _part(1, span.trace_id),
            _part(2, span.span_id),
            _part(4, span.parent_id) if span.parent_id else b"",
            _text(5, span.name),
            _number(6, span.kind),
            _fixed(7, span.start_ns),
            _fixed(8, max(span.start_ns, span.end_ns)),
            _attributes(9, span.attributes),
            *(_part(11, _event(each)) for each in span.events),
            *(_part(13, _link(each)) for each in span.links),
            _part(15, _text(2, span.error) + _number(3, _ERROR)) if span.error else b"",
        )
    )


def _event(event: TraceEvent) -> bytes:
    return _fixed(1, event.time_ns) + _text(2, event.name) + _attributes(3, event.attributes)


def _link(link: TraceLink) -> bytes:
    return _part(1, link.trace_id) + _part(2, link.span_id) + _attributes(4, link.attributes)


def _metric(family: MetricFamily, since_ns: int, now_ns: int) -> bytes:
    named = _text(1, family.name) + _text(2, family.about)
    if family.kind == "histogram":
        points = b"".join(_part(1, _buckets(each, since_ns, now_ns)) for each in family.points)
        return named + _part(9, points + _number(2, _CUMULATIVE))
    points = b"".join(_part(1, _point(each, since_ns, now_ns)) for each in family.points)
    if family.kind == "gauge":
        return named + _part(5, points)
    return named + _part(7, points + _number(2, _CUMULATIVE) + _number(3, 1))


def _point(point: MetricPoint, since_ns: int, now_ns: int) -> bytes:
    times = _fixed(2, since_ns) + _fixed(3, now_ns)
    return times + _double(4, point.value) + _attributes(7, point.attributes)


def _buckets(point: MetricPoint, since_ns: int, now_ns: int) -> bytes:
    counts, bounds = point.counts, point.bounds
    return b"".join(
        (
            _fixed(2, since_ns),
            _fixed(3, now_ns),
            _fixed(4, sum(counts)),
            _double(5, point.value),
            _part(6, struct.pack(f"<{len(counts)}Q", *counts)),
            _part(7, struct.pack(f"<{len(bounds)}d", *bounds)),
            _attributes(9, point.attributes),
        )
    )


def _log(line: LogLine) -> bytes:
    return b"".join(
        (
            _fixed(1, line.time_ns),
            _number(2, line.severity),
            _text(3, line.level),
            _part(5, _value(line.text)),
            _attributes(6, {"logger": line.logger}),
            _fixed(11, line.time_ns),
        )
    )


def _attributes(field: int, given: Attributes) -> bytes:
    return b"".join(
        _part(field, _text(1, name) + _part(2, _value(value))) for name, value in given.items()
    )


def _value(value: Value) -> bytes:
    if isinstance(value, str):
        return _part(1, _utf8(value))
    if isinstance(value, bool):
        return _key(2, _VARINT) + _varint(value)
    if isinstance(value, int):
        return _key(3, _VARINT) + _varint(value & (1 << 64) - 1)
    if isinstance(value, float):
        return _double(4, value)
    return _part(5, b"".join(_part(1, _value(each)) for each in value))


def _text(field: int, text: str) -> bytes:
    return _part(field, _utf8(text)) if text else b""


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _part(field: int, data: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(data)) + data


def _number(field: int, number: int) -> bytes:
    return _key(field, _VARINT) + _varint(number)


def _fixed(field: int, number: int) -> bytes:
    return _key(field, _FIXED64) + struct.pack("<Q", max(0, number))


def _double(field: int, number: float) -> bytes:
    return _key(field, _FIXED64) + struct.pack("<d", number)


def _key(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
