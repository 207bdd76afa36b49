"""A whole daemon and a collector: what a run was comes as a trace, once, also when the collector
was away for a while.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from palyra.core.trace_context import trace_of
from palyra.models.scripted import ScriptedCall, Turn
from tests import daemon as process
from tests.fake_provider import Answer, FakeProvider, Request, Script, openai_chat
from tests.inprocess import daemon, finished, say, session

CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
DONE = Answer(b"", content_type="application/x-protobuf")


def settings(collector: FakeProvider, **more: object) -> str:
    base = collector.url.removesuffix("/v1")
    lines = [f'endpoint = "{base}"']
    lines += [f"{name} = {str(value).lower()}" for name, value in more.items()]
    return "\n".join(["[telemetry]", *lines])


def spans_of(requests: list[Request]) -> list[Span]:
    found = []
    for request in requests:
        if request.path == "/v1/traces":
            sent = ExportTraceServiceRequest.FromString(request.body)
            for resource in sent.resource_spans:
                found += [span for scope in resource.scope_spans for span in scope.spans]
    return found


async def sent(arrived: asyncio.Event, enough: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not enough():
            arrived.clear()
            await arrived.wait()


def roots(spans: list[Span]) -> list[str]:
    return [each.trace_id.hex() for each in spans if each.name == "invoke_agent palyra"]


def test_a_collector_that_was_away_gets_every_run_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        away, arrived = True, asyncio.Event()

        def answer(request: Request) -> Answer:
            arrived.set()
            return Answer(b"later", status=503) if away else DONE

        async with FakeProvider(answer) as collector:
            model = [
                Turn(calls=(ScriptedCall(name="fs.list", arguments={"path": "."}),)),
                Turn(text="nothing is here"),
            ]
            more = settings(collector, metrics=False)
            async with daemon(tmp_path, {"*": model}, more) as opened:
                where = await session(opened)
                runs = []
                for text in ("look here", "look again"):
                    runs.append(await say(opened, where, text))
                    await finished(opened, runs[-1])
                await sent(arrived, lambda: collector.requests)
                away = False
                known = len(collector.requests)
                wanted = [trace_of(each.run_id).hex() for each in runs]
                await sent(arrived, lambda: len(roots(spans_of(collector.requests[known:]))) >= 2)
                last = await say(opened, where, "and now")
                await finished(opened, last)
                wanted.append(trace_of(last.run_id).hex())
            # The last one is sent when the daemon ends, if not before.
            taken = spans_of(collector.requests[known:])
            assert roots(taken) == wanted
            names = [each.name for each in taken]
            assert names.count("execute_tool fs.list") == 1
            assert names.count("chat one") == 4

    asyncio.run(scenario())


def test_a_trace_goes_through_from_the_caller_to_the_provider(tmp_path: Path) -> None:
    async def scenario() -> None:
        reply = Answer(openai_chat(Script(text=(f"your token is {TOKEN}",))))
        async with FakeProvider(reply) as provider, FakeProvider(DONE) as collector:
            config = f"""
[models]
default = "fake/one"
[providers.fake]
kind = "openai-chat"
base_url = "{provider.url}"
api_key = "env:FAKE_KEY"
models = ["one"]
{settings(collector, logs=True, content=True, metrics_seconds=1)}
"""

            def ask() -> bytes:
                env = {"FAKE_KEY": "k" * 20}
                with process.start(tmp_path, config=config, env=env) as running:
                    where = running.post("/v1/sessions")["session_id"]
                    run = running.post(
                        f"/v1/sessions/{where}/messages",
                        {"text": f"keep {TOKEN} for me"},
                        headers={"traceparent": CALLER},
                    )
                    path = f"/v1/sessions/{where}/events?until={run['run_id']}"
                    assert [*running.events(path)][-1][2]["kind"] == "run.completed"
                    deadline = time.monotonic() + 30
                    while not any(each.path == "/v1/metrics" for each in collector.requests):
                        assert time.monotonic() < deadline
                        time.sleep(0.05)
                    return running.request("GET", "/metrics").body

            metrics = await asyncio.to_thread(ask)
            trace = "4bf92f3577b34da6a3ce929d0e0e4736"
            spans = spans_of(collector.requests)
            assert {each.trace_id.hex() for each in spans} == {trace}
            by_name = {each.name: each for each in spans}
            run, turn = by_name["invoke_agent palyra"], by_name["turn 1"]
            assert run.parent_span_id.hex() == "00f067aa0ba902b7"
            [asked] = [each for each in provider.requests if b"keep" in each.body]
            assert asked.headers["traceparent"] == f"00-{trace}-{turn.span_id.hex()}-01"
            # What was said is there, for the settings say so; what is secret is not.
            everything = b"".join(each.body for each in collector.requests)
            assert b"for me" in everything
            assert TOKEN.encode() not in everything
            assert _gauge(collector, "palyra_runs_ended_total")
            assert any(each.startswith("palyra") for each in _loggers(collector))
            text = metrics.decode()
            assert 'palyra_run_seconds_count{state="completed"} 1' in text
            assert "palyra_model_reply_seconds_count 1" in text
            assert "palyra_queue_wait_seconds_count 1" in text

    asyncio.run(scenario())


def _gauge(collector: FakeProvider, name: str) -> list[Any]:
    found = []
    for request in collector.requests:
        if request.path == "/v1/metrics":
            read = ExportMetricsServiceRequest.FromString(request.body)
            [scope] = read.resource_metrics[0].scope_metrics
            found += [each for each in scope.metrics if each.name == name]
    return found


def _loggers(collector: FakeProvider) -> set[str]:
    return {
        line.attributes[0].value.string_value
        for request in collector.requests
        if request.path == "/v1/logs"
        for line in ExportLogsServiceRequest.FromString(request.body)
        .resource_logs[0]
        .scope_logs[0]
        .log_records
    }


def test_without_a_collector_nothing_is_sent_and_nobody_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        reply = Answer(openai_chat(Script(text=("hello",))))
        async with FakeProvider(reply) as provider:
            more = f"""
[providers.fake]
kind = "openai-chat"
base_url = "{provider.url}"
models = ["two"]
"""
            async with daemon(tmp_path, [Turn(text="unused")], more) as opened:
                assert opened.hub.watchers == 0
                where = await session(opened)
                await finished(opened, await say(opened, where, "hello", model="fake/two"))
                assert "traceparent" not in provider.requests[-1].headers

    asyncio.run(scenario())
