"""The gRPC door of a daemon process, as strangers meet it: asked what it offers, sent rubbish, read
slowly, cut off, ended.
"""

import json
import random
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived, TrailersReceived

from palyra.api.grpc.binding import services
from palyra.v1 import (
    admin_pb2,
    events_pb2,
    journal_pb2,
    journal_pb2_grpc,
    options_pb2,
    sessions_pb2,
    sessions_pb2_grpc,
    types_pb2,
)
from tests import daemon
from tests.doors.grpc_process import PATIENCE_S, Door, code, eventually, refused
from tests.escapes.world import patience

CONFIG = """
[server]
grpc = true
grpc_port = 0
[limits]
requests_per_second = 100000
body_bytes = 1000000
# What is learnt from what was said comes when it is quiet for a while, and would be counted as memory of who is being served.
[memory]
embeddings = false
"""
MANY = [f"word{number} " for number in range(3_000)]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    script = {"*": [{"text": "hello"}], "much": [{"text": MANY}]}
    with daemon.start(tmp_path_factory.mktemp("grpc"), config=CONFIG, script=script) as process:
        opened = Door(process)
        yield opened
        opened.channel.close()


def test_a_client_that_knows_nothing_finds_out_what_there_is_and_calls_it(door: Door) -> None:
    database = ProtoReflectionDescriptorDatabase(door.channel)
    names = database.get_services()
    assert {
        f"palyra.v1.{each}"
        for each in ("Sessions", "Runs", "Approvals", "Memory", "Schedules", "Journal", "Admin")
    } <= {*names}
    pool = DescriptorPool(database)
    method = pool.FindServiceByName("palyra.v1.Sessions").methods_by_name["FindOrCreate"]
    asked, answered = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    call = door.channel.unary_unary(
        "/palyra.v1.Sessions/FindOrCreate",
        request_serializer=asked.SerializeToString,
        response_deserializer=answered.FromString,
    )
    made = call(asked(title="found out"), metadata=door.metadata, timeout=PATIENCE_S)
    assert (len(made.session_id), made.title) == (26, "found out")
    down = pool.FindMessageTypeByName("palyra.v1.Event")
    assert (
        down.fields_by_name["model_replied"].message_type.fields_by_name["usage"].message_type.name
        == "Usage"
    )


def test_a_probe_needs_no_token(door: Door) -> None:
    probe = health_pb2_grpc.HealthStub(door.channel)
    for name in ("", "palyra.v1.Sessions", "palyra.v1.Admin"):
        found = probe.Check(health_pb2.HealthCheckRequest(service=name), timeout=PATIENCE_S)
        assert found.status == health_pb2.HealthCheckResponse.SERVING

    def unknown() -> object:
        return probe.Check(health_pb2.HealthCheckRequest(service="nobody"), timeout=PATIENCE_S)

    assert code(unknown) == grpc.StatusCode.NOT_FOUND


def test_strangers_cannot_use_up_what_others_need(door: Door) -> None:
    probe = health_pb2_grpc.HealthStub(door.channel)
    held = [probe.Watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S) for _ in range(80)]
    try:
        assert _refused(held) == 80 - 64
        assert door.alive()
    finally:
        for each in held:
            each.cancel()


def _refused(held: list[Any]) -> int:
    count = 0
    for each in held:
        try:
            next(each)
        except grpc.RpcError as error:
            count += error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    return count


def methods() -> list[tuple[str, Any]]:
    return [
        (f"/{service.full_name}/{method.name}", method)
        for service in services()
        for method in service.methods
    ]


def raw_call(door: Door, path: str, method: Any, payload: bytes, metadata: Any) -> grpc.StatusCode:
    """Call with these bytes, whatever they are; a stream is looked at until its first message."""
    if method.client_streaming:
        answers = door.channel.stream_stream(path)(
            iter([payload]), metadata=metadata, timeout=PATIENCE_S
        )
    elif method.server_streaming:
        answers = door.channel.unary_stream(path)(payload, metadata=metadata, timeout=PATIENCE_S)
    else:
        answers = None
    try:
        if answers is None:
            door.channel.unary_unary(path)(payload, metadata=metadata, timeout=PATIENCE_S)
        else:
            next(iter(answers), None)
            answers.cancel()
    except grpc.RpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_no_verb_is_open_to_a_stranger_or_to_a_token_for_something_else(door: Door) -> None:
    made = door.call(
        door.admin.CreateToken, admin_pb2.AdminCreateTokenRequest(name="elsewhere", scope="worker")
    )
    for path, method in methods():
        assert raw_call(door, path, method, b"", ()) == grpc.StatusCode.UNAUTHENTICATED, path
        assert raw_call(door, path, method, b"", (("authorization", f"Bearer {made.token}"),)) in (
            grpc.StatusCode.PERMISSION_DENIED,
            # What workers may do is told apart from what they must send.
            *(
                (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.OK)
                if "worker" in _scope(method)
                else ()
            ),
        ), path


def _scope(method: Any) -> str:
    return str(method.GetOptions().Extensions[options_pb2.scope])


def test_pages_do_not_talk_to_it(door: Door) -> None:
    error = refused(
        lambda: door.sessions.List(
            sessions_pb2.SessionsListRequest(),
            metadata=(*door.metadata, ("origin", "https://evil.example")),
            timeout=PATIENCE_S,
        )
    )
    assert error.code() == grpc.StatusCode.PERMISSION_DENIED


def test_files_come_in_pieces(door: Door) -> None:
    journal = journal_pb2_grpc.JournalStub(door.channel)
    door.session()
    pieces = door.call(journal.Export, journal_pb2.JournalExportRequest())
    lines = b"".join(each.data for each in pieces).splitlines()
    assert json.loads(lines[0])["position"] == 1


def test_numbers_are_kept_whole_and_errors_have_the_one_shape(door: Door) -> None:
    error = refused(
        lambda: door.call(
            door.sessions.Submit, sessions_pb2.SessionsSubmitRequest(session_id=door.session())
        )
    )
    problem = events_pb2.Problem.FromString(dict(error.trailing_metadata())["palyra-error-bin"])
    assert (error.code(), problem.code, problem.retryable) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "invalid_input",
        False,
    )
    assert "text" in problem.message
    late = sessions_pb2.SessionsWatchRequest(session_id=door.session(), after=(1 << 53) - 1)
    beyond = refused(lambda: next(iter(door.call(door.sessions.Watch, late))))
    assert "9007199254740991" in beyond.details()
    deep = admin_pb2.AdminExplainPolicyRequest(tool="fs.read", arguments_json="[" * 500)
    assert (
        code(lambda: door.call(door.admin.ExplainPolicy, deep)) == grpc.StatusCode.INVALID_ARGUMENT
    )


def test_the_client_on_the_page_works(door: Door, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "grpc.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    for written, here in (
        (
            'Path.home() / ".palyra" / "owner.token"',
            f"Path({str(door.process.home / 'owner.token')!r})",
        ),
        ("127.0.0.1:7443", door.address),
    ):
        assert written in example
        example = example.replace(written, here)
    exec(compile(example, "grpc.md", "exec"), {})
    assert capsys.readouterr().out == "hello"


def test_a_deadline_ends_a_stream_and_nothing_is_left_of_it(door: Door) -> None:
    request = sessions_pb2.SessionsWatchRequest(session_id=door.session(), after=1)
    stream = door.sessions.Watch(request, metadata=door.metadata, timeout=0.3)
    assert code(lambda: next(iter(stream))) == grpc.StatusCode.DEADLINE_EXCEEDED
    assert eventually(lambda: _open_streams(door) == 0)


def _open_streams(door: Door) -> int:
    text = door.process.request("GET", "/metrics").body.decode()
    return int(float(text.partition("\npalyra_streams ")[2].split("\n")[0]))


def test_a_revoked_token_ends_what_was_opened_with_it(door: Door) -> None:
    made = door.call(
        door.admin.CreateToken, admin_pb2.AdminCreateTokenRequest(name="short", scope="operator")
    )
    metadata = (("authorization", f"Bearer {made.token}"),)
    session_id = door.session()
    talk = door.sessions.RunStream(
        iter([types_pb2.Up(open=types_pb2.Open(session_id=session_id))]),
        metadata=metadata,
        timeout=PATIENCE_S,
    )
    assert next(talk).happened[0].entry.kind == "session.created"
    door.call(
        door.admin.RevokeToken, admin_pb2.AdminRevokeTokenRequest(token_id=made.info.token_id)
    )
    assert code(lambda: next(talk)) == grpc.StatusCode.UNAVAILABLE

    def again() -> object:
        return door.sessions.Get(
            sessions_pb2.SessionsGetRequest(session_id=session_id), metadata=metadata
        )

    assert code(again) == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    "first",
    [
        types_pb2.Up(),
        types_pb2.Up(ping=types_pb2.Ping(id="1")),
        types_pb2.Up(open=types_pb2.Open(session_id="nobody")),
    ],
)
def test_a_talk_begins_with_its_session(door: Door, first: Any) -> None:
    talk = door.sessions.RunStream(iter([first]), metadata=door.metadata, timeout=PATIENCE_S)
    assert code(lambda: next(talk)) == grpc.StatusCode.INVALID_ARGUMENT


def test_rubbish_in_place_of_messages_is_refused_and_said_why(door: Door) -> None:
    dice = random.Random(8)
    allowed = {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.OK,
        grpc.StatusCode.FAILED_PRECONDITION,
    }
    harmless = [
        (path, method)
        for path, method in methods()
        if not path.endswith(("/Restart", "/RevokeToken", "/Stop"))
    ]
    for path, method in dice.sample(harmless, 40):
        for payload in (
            b"\xff" * 10,
            dice.randbytes(40),
            b"\x0a\xff\xff\xff\xff\x7f",
            b"\x0a\x04\xff\xfe\xfd\xfc",
        ):
            found = raw_call(door, path, method, payload, door.metadata)
            assert found in allowed, f"{path} answered {found} to {payload!r}"
    assert door.alive()


def test_what_is_too_large_is_refused(door: Door) -> None:
    large = sessions_pb2.SessionsSubmitRequest(session_id=door.session(), text="x" * 1_100_000)
    assert (
        code(lambda: door.call(door.sessions.Submit, large)) == grpc.StatusCode.RESOURCE_EXHAUSTED
    )
    crowded = (*door.metadata, *((f"x-{number}", "y" * 1_000) for number in range(40)))

    def many() -> object:
        return door.sessions.List(
            sessions_pb2.SessionsListRequest(), metadata=crowded, timeout=PATIENCE_S
        )

    assert code(many) == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert door.alive()


def test_who_has_no_token_is_refused_before_the_request_has_come(door: Door) -> None:
    host, _, port = door.address.rpartition(":")
    talk = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
    talk.initiate_connection()
    for number in range(200):
        path = "/palyra.v1.Sessions/List" if number % 2 else "/palyra.v1.Sessions/RunStream"
        headers = [(":method", "POST"), (":scheme", "http"), (":authority", "x"), (":path", path), ("te", "trailers"),
                   ("content-type", "application/grpc"), ("authorization", "Bearer plr_nobody")]  # fmt: skip
        talk.send_headers(talk.get_next_available_stream_id(), headers)
    ended: dict[int, str] = {}
    with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
        connection.sendall(talk.data_to_send())
        while len(ended) < 200:
            for event in talk.receive_data(connection.recv(65_536)):
                if isinstance(event, (ResponseReceived, TrailersReceived)):
                    found = dict(event.headers or ())
                    ended |= (
                        {event.stream_id or 0: found["grpc-status"]}
                        if "grpc-status" in found
                        else {}
                    )
            connection.sendall(talk.data_to_send())
    assert set(ended.values()) == {str(grpc.StatusCode.UNAUTHENTICATED.value[0])}
    assert door.alive()


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
    )


def attacks(dice: random.Random) -> Iterator[bytes]:
    settings = frame(4, 0, 0, b"")
    yield b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    yield dice.randbytes(4_000)
    yield PREFACE + dice.randbytes(4_000)
    # Data and continuations that belong to nothing, a header block without end, pings and resets
    # without measure.
    yield PREFACE + settings + frame(0, 0, 1, b"x" * 100)
    yield PREFACE + settings + frame(1, 0, 1, b"\x82") + frame(9, 0, 1, b"\x00" * 16_000) * 40
    yield PREFACE + settings + frame(6, 0, 0, b"12345678") * 5_000
    yield (
        PREFACE
        + settings
        + b"".join(frame(3, 0, number, b"\0\0\0\x08") for number in range(1, 4_000, 2))
    )
    yield PREFACE + settings + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 10
    yield PREFACE + settings * 2_000
    for _ in range(20):
        yield (
            PREFACE
            + settings
            + b"".join(
                frame(
                    dice.randrange(12),
                    dice.randrange(256),
                    dice.choice((0, 1, 3)),
                    dice.randbytes(dice.randrange(60)),
                )
                for _ in range(20)
            )
        )


def test_frames_that_make_no_sense_end_their_connection_and_nothing_else(door: Door) -> None:
    host, _, port = door.address.rpartition(":")
    before = door.resident_kb
    for attack in attacks(random.Random(9)):
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as connection:
            try:
                connection.sendall(attack)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65_536):
                    pass
            except OSError:
                pass  # It closed the connection, as it should.
    assert door.alive()
    assert door.resident_kb - before < 30_000


def test_readers_who_do_not_read_cost_a_bounded_amount_and_hold_nobody_up(door: Door) -> None:
    session_id = door.session()
    # Small windows: what is not read stays with the daemon.
    slow = grpc.insecure_channel(
        door.address,
        options=(("grpc.http2.lookahead_bytes", 1_024), ("grpc.use_local_subchannel_pool", 1)),
    )
    watch = sessions_pb2_grpc.SessionsStub(slow).Watch
    request = sessions_pb2.SessionsWatchRequest(session_id=session_id)
    streams = [watch(request, metadata=door.metadata) for _ in range(40)]
    try:
        before = door.resident_kb
        with ThreadPoolExecutor(4) as pool:
            for _ in range(3):
                submitted = door.call(
                    door.sessions.Submit,
                    sessions_pb2.SessionsSubmitRequest(session_id=session_id, text="much"),
                )
                until = sessions_pb2.SessionsWatchRequest(
                    session_id=session_id, after=submitted.seq, until=submitted.run_id
                )
                ends = list(pool.map(lambda _, request=until: _last(door, request), range(4)))
                assert ends == ["run.completed"] * 4
        assert door.resident_kb - before < 60_000
    finally:
        for stream in streams:
            stream.cancel()
        slow.close()
    assert door.alive()


def _last(door: Door, request: Any) -> str:
    kind = ""
    for batch in door.call(door.sessions.Watch, request):
        kind = batch.happened[-1].entry.kind or kind
    return kind


def test_who_watches_everything_is_told_of_changes_that_they_may_ask_about(door: Door) -> None:
    made = door.call(
        door.admin.CreateToken, admin_pb2.AdminCreateTokenRequest(name="reader", scope="viewer")
    )
    reader = (("authorization", f"Bearer {made.token}"),)
    heard = {}
    for name, metadata in (("owner", door.metadata), ("reader", reader)):
        after = door.process.get("/v1/status")["entries"]
        stream = door.sessions.WatchAll(
            sessions_pb2.SessionsWatchAllRequest(after=after), metadata=metadata, timeout=PATIENCE_S
        )
        # Before its beginning is seen, nothing is promised.
        stream.initial_metadata()
        door.call(
            door.admin.CreateToken,
            admin_pb2.AdminCreateTokenRequest(name="changed", scope="viewer"),
        )
        heard[name] = _told(stream, "settings")
        stream.cancel()
    assert heard["owner"] >= {"settings", "tokens"}
    assert "tokens" not in heard["reader"]


def _told(stream: Any, upto: str) -> set[str]:
    told: set[str] = set()
    for batch in stream:
        told |= {topic for one in batch.happened for topic in one.state_changed.what}
        if upto in told:
            break
    return told


def test_a_daemon_that_stops_ends_its_streams_and_says_so_before(door: Door) -> None:
    session_id = door.session()
    watched = health_pb2_grpc.HealthStub(door.channel).Watch(
        health_pb2.HealthCheckRequest(), timeout=PATIENCE_S
    )
    assert next(watched).status == health_pb2.HealthCheckResponse.SERVING
    stream = door.sessions.Watch(
        sessions_pb2.SessionsWatchRequest(session_id=session_id),
        metadata=door.metadata,
        timeout=PATIENCE_S,
    )
    assert next(stream).happened[0].entry.kind == "session.created"
    begun = time.monotonic()
    assert door.process.stop() == 0
    # Nobody who only watches is waited for.
    assert time.monotonic() - begun < 2.9 * patience()
    assert code(lambda: next(stream)) == grpc.StatusCode.UNAVAILABLE
    assert next(watched).status == health_pb2.HealthCheckResponse.NOT_SERVING
