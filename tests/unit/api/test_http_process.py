"""Around the process: who holds a port, whether Ollama is there, what the log keeps to itself."""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from palyra.api import exposure, listen_sockets
from palyra.core.errors import ConfigInvalid, Conflict
from palyra.serve import logs, ollama, process_files
from palyra.system.redactor import Redactor

KEY = "sk-proj-" + "Zq3vW8xT2mK9pL4nR7sB1cY6dF0gH5jA" * 2


def test_a_taken_port_names_the_process_that_has_it() -> None:
    with listen_sockets.bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        holder = listen_sockets.holder_of(port)
        assert holder is not None
        assert holder[0] == os.getpid()
        with pytest.raises(Conflict) as refused:
            listen_sockets.bind("localhost", port)
        assert refused.value.details == {"port": port, "pid": os.getpid()}
    assert listen_sockets.holder_of(port) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "palyra.example", ""])
def test_without_tls_only_loopback_can_be_listened_on(host: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        listen_sockets.bind(host, 0)
    assert refused.value.details["key"] in ("server.tls.enabled", "server.host")


def test_with_tls_every_address_of_this_machine_can_be_listened_on() -> None:
    with listen_sockets.bind("0.0.0.0", 0, tls=True) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"
    with pytest.raises(ConfigInvalid):
        listen_sockets.bind("palyra.example", 0, tls=True)


def test_a_taken_udp_port_names_the_process_that_has_it() -> None:
    with listen_sockets.bind_udp("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(Conflict) as refused:
            listen_sockets.bind_udp("127.0.0.1", port)
        assert refused.value.details == {"port": port, "pid": os.getpid()}
        assert "server.quic_port" in refused.value.message


def test_the_daemon_is_called_by_what_it_listens_on() -> None:
    local = {"localhost", "127.0.0.1", "::1"}
    assert set(exposure.names_of("127.0.0.1", ())) == local
    assert set(exposure.names_of("192.0.2.7", ("Box.Example",))) == {
        *local,
        "192.0.2.7",
        "box.example",
    }
    everywhere = set(exposure.names_of("0.0.0.0", ()))
    assert {*local, socket.gethostname().lower()} <= everywhere
    assert "0.0.0.0" not in everywhere
    assert exposure.called("0.0.0.0") == "127.0.0.1"


def test_a_home_has_one_daemon_and_the_second_learns_of_the_first(tmp_path: Path) -> None:
    with process_files.locked(tmp_path):
        with pytest.raises(Conflict) as refused, process_files.locked(tmp_path):
            pass
        assert refused.value.details == {"pid": os.getpid()}
    with process_files.locked(tmp_path):
        pass


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            b'HTTP/1.0 200 OK\r\n\r\n{"models": [{"name": "qwen3:8b", "size": 1}, {"name": "b"}]}',
            ["qwen3:8b", "b"],
        ),
        (b'HTTP/1.1 200 OK\r\n\r\n{"models": []}', []),
        (b"HTTP/1.0 404 Not Found\r\n\r\n{}", None),
        (b"HTTP/1.0 200 OK\r\n\r\n<html>", None),
        (b"HTTP/1.0 200 OK\r\n\r\n[1]", None),
        (b"220 mail.example ESMTP\r\n", None),
        (b"", None),
        (None, None),
    ],
)
def test_a_local_ollama_is_recognised_by_what_it_answers(
    answer: bytes | None, expected: list[str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None answers nothing at all, and must not hold up the start."""
    if answer is not None:
        # What it says is the question here, not how busy this machine is.
        monkeypatch.setattr(ollama, "_LIMIT_S", 20)

    async def scenario() -> list[str] | None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            return await asyncio.wait_for(ollama.models(f"http://127.0.0.1:{port}"), 30)

    assert asyncio.run(scenario()) == expected


def test_no_ollama_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert asyncio.run(ollama.models(f"http://127.0.0.1:{port}")) is None


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    before, level, uvicorn = root.handlers[:], root.level, logging.getLogger("uvicorn").level
    # Ours close what they replace; pytest's own must not be among that.
    root.handlers = []
    yield root
    for handler in root.handlers:
        handler.close()
    root.handlers = before
    root.setLevel(level)
    logging.getLogger("uvicorn").setLevel(uvicorn)


def _written(root: logging.Logger) -> None:
    """Lines are written behind everybody's back: closing waits for the last one."""
    for handler in root.handlers[:]:
        handler.close()


def test_no_record_is_written_with_a_secret_in_it(
    tmp_path: Path, root_logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    logs.start(tmp_path, "info", Redactor(bytes(32)).redact)
    log = logging.getLogger("palyra.test")
    log.info("quiet on the screen")
    log.warning("the key is %s", KEY)
    try:
        raise ValueError(f"refused: {KEY}")
    except ValueError:
        log.exception("it failed with api_key=%s", KEY)
    log.debug("below the level")
    _written(root_logger)
    path = tmp_path / "logs" / "daemon.log"
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    shown = capsys.readouterr().err
    assert [line["level"] for line in lines] == ["info", "warning", "error"]
    assert KEY not in path.read_text() + shown
    assert "[redacted:" in lines[1]["message"]
    assert "ValueError: refused: [redacted:" in lines[2]["error"]
    assert "quiet on the screen" not in shown
    assert "Traceback" in shown
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_log_does_not_grow_without_end(
    tmp_path: Path, root_logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 10_000)
    logs.start(tmp_path, "info", lambda text: text)
    for number in range(2_000):
        logging.getLogger("palyra.test").info("line %d", number)
    _written(root_logger)
    kept = sorted((tmp_path / "logs").iterdir())
    assert [path.name for path in kept] == [
        "daemon.log",
        "daemon.log.1",
        "daemon.log.2",
        "daemon.log.3",
    ]
    assert all(path.stat().st_size <= 10_000 for path in kept)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in kept)
    assert b"line 1999" in kept[0].read_bytes()
