"""What is sent is what opentelemetry's own definitions read."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_CUMULATIVE

from palyra.api.metrics import family, labels_of, single
from palyra.features.telemetry import otlp
from palyra.features.telemetry.exposition import families_of
from palyra.features.telemetry.otlp import LogLine, TraceEvent, TraceLink, TraceSpan

VALUES = st.one_of(
    st.text(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.lists(st.text(), max_size=3).map(tuple),
)


def plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(map(plain, value.array_value.values))
    return getattr(value, kind)


@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=5), st.text(), st.text())
def test_a_span_reads_back_as_it_was(about: dict[str, Any], name: str, error: str) -> None:
    span = TraceSpan(
        b"t" * 16,
        b"s" * 8,
        b"p" * 8,
        name,
        otlp.CLIENT,
        1_000,
        2_000,
        about,
        events=(TraceEvent(1_500, "said", about),),
        links=(TraceLink(b"u" * 16, b"v" * 8, about),),
        error=error,
    )
    request = ExportTraceServiceRequest.FromString(otlp.traces({"service.name": "x"}, "1", [span]))
    [resource] = request.resource_spans
    assert {each.key: plain(each.value) for each in resource.resource.attributes} == {
        "service.name": "x"
    }
    [scope] = resource.scope_spans
    assert (scope.scope.name, scope.scope.version) == ("palyra", "1")
    [read] = scope.spans
    assert (read.trace_id, read.span_id, read.parent_span_id) == (b"t" * 16, b"s" * 8, b"p" * 8)
    assert (read.name, read.kind, read.start_time_unix_nano) == (name, otlp.CLIENT, 1_000)
    assert read.end_time_unix_nano == 2_000
    assert {each.key: plain(each.value) for each in read.attributes} == about
    assert {each.key: plain(each.value) for each in read.events[0].attributes} == about
    assert {each.key: plain(each.value) for each in read.links[0].attributes} == about
    assert (read.status.code, read.status.message) == ((2, error) if error else (0, ""))


def test_metrics_are_those_of_the_exposition() -> None:
    text = "\n".join(
        [
            *single("palyra_streams", "gauge", "open streams", 3),
            *family("palyra_calls_total", "counter", "calls"),
            f"palyra_calls_total{labels_of(model='a b', why=chr(34) + chr(10) + chr(92))} 7",
            *family("palyra_x_seconds", "histogram", "time"),
            f"palyra_x_seconds_bucket{labels_of(route='r', le='0.1')} 2",
            f"palyra_x_seconds_bucket{labels_of(route='r', le='1.0')} 5",
            f"palyra_x_seconds_bucket{labels_of(route='r', le='+Inf')} 6",
            f"palyra_x_seconds_sum{labels_of(route='r')} 4.5",
            f"palyra_x_seconds_count{labels_of(route='r')} 6",
        ]
    )
    sent = otlp.metrics({}, "1", families_of(text), 5, 9)
    request = ExportMetricsServiceRequest.FromString(sent)
    gauge, counter, histogram = request.resource_metrics[0].scope_metrics[0].metrics
    assert (gauge.name, gauge.gauge.data_points[0].as_double) == ("palyra_streams", 3.0)
    [point] = counter.sum.data_points
    assert counter.sum.is_monotonic
    assert counter.sum.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
    assert {each.key: plain(each.value) for each in point.attributes} == {
        "model": "a b",
        "why": '"\n\\',
    }
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (7.0, 5, 9)
    [buckets] = histogram.histogram.data_points
    assert list(buckets.bucket_counts) == [2, 3, 1]
    assert list(buckets.explicit_bounds) == [0.1, 1.0]
    assert (buckets.count, buckets.sum) == (6, 4.5)
    assert {each.key: plain(each.value) for each in buckets.attributes} == {"route": "r"}


def test_a_log_line_keeps_its_level_and_its_text() -> None:
    sent = otlp.logs({}, "1", [LogLine(7, 17, "error", "palyra.x", "broken \ud800")])
    [line] = ExportLogsServiceRequest.FromString(sent).resource_logs[0].scope_logs[0].log_records
    assert (line.time_unix_nano, line.severity_number, line.severity_text) == (7, 17, "error")
    assert line.body.string_value == "broken ?"
    assert plain(line.attributes[0].value) == "palyra.x"
