"""The clients: a Python one that waits, one that is awaited, and a JavaScript one, against a daemon
that also dies meanwhile.
"""

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from scripts import clients, npm_package

from palyra.client import Answered, AsyncClient, Client, RunBroke, Unreachable, event_of
from palyra.client.types.skills import Proposal, ShownSkill
from palyra.core.errors import InvalidInput, NotFound, Unauthenticated
from palyra.core.events import ApprovalRequested, Entry, ModelDelta
from tests import daemon
from tests.daemon import DaemonProcess

LONGEST_S = 60
JS = (Path(clients.__file__).parents[1] / "clients" / "js" / "index.js").as_uri()
WRITE = {"name": "fs.write", "arguments": {"path": "note.txt", "content": "first\n"}}


@pytest.fixture(scope="module")
def hold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hold") / "go"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, hold: Path) -> Iterator[DaemonProcess]:
    script = {
        "*": [{"text": ["hello ", "there"]}],
        "write": [{"text": "I write it.", "calls": [WRITE]}, {"text": "written"}],
        "hold": [{"text": ["so ", "far"], "hold": str(hold), "hold_after": 1}],
        "fail": [{"fail": {"failure": "auth", "message": "no such key"}}],
    }
    config = (
        "[limits]\nrequests_per_second = 100000\n[memory]\nembeddings = false\n" + daemon.IMPATIENT
    )
    with daemon.start(tmp_path_factory.mktemp("clients"), config=config, script=script) as process:
        yield process


@pytest.fixture
def client(served: DaemonProcess) -> Iterator[Client]:
    with Client(served.url, served.token) as opened:
        yield opened


def node(served: DaemonProcess, program: str) -> "subprocess.Popen[str]":
    head = f'import {{ Palyra, PalyraError }} from "{JS}";\n'
    head += "const palyra = new Palyra({url: process.env.URL, token: process.env.TOKEN});\n"
    return subprocess.Popen(
        [npm_package.node(), "--input-type=module", "-e", head + program],
        env={"PATH": os.environ["PATH"], "URL": served.url, "TOKEN": served.token},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def told(process: "subprocess.Popen[str]") -> Any:
    out, err = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, out + err
    return json.loads(out)


def test_asking_and_its_words_as_they_come(client: Client) -> None:
    heard: list[str] = []
    answered = client.ask(
        "hi", on=lambda item: heard.append(item.text) if isinstance(item, ModelDelta) else None
    )
    assert answered.text == "hello there"
    assert "".join(heard) in ("", "hello there")
    assert client.get_run(answered.run_id).state == "done"
    assert [each.session_id for each in client.list_sessions(limit=1).sessions] == [
        answered.session_id
    ]
    assert client.request("GET", "/v1/status")["url"] == client.status().url


def test_an_approval_is_answered_by_who_watches(client: Client) -> None:
    def answer(item: object) -> None:
        if isinstance(item, Entry) and isinstance(event := event_of(item), ApprovalRequested):
            client.answer(event.approval_id, decision="allow")

    assert client.ask("write", on=answer).text == "written"
    assert client.list_approvals(pending="any").approvals[0].decision == "allow"


def test_errors_are_those_of_the_daemon(served: DaemonProcess, client: Client) -> None:
    with pytest.raises(RunBroke, match="no such key"):
        client.ask("fail")
    with pytest.raises(NotFound):
        client.get_session("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(InvalidInput):
        client.get_run("not an id")
    with pytest.raises(Unreachable):
        Client("http://127.0.0.1:1", "x").status()
    with pytest.raises(Unauthenticated):
        Client(served.url).list_models()
    found = Client(home=served.home)
    assert found.status().version == client.status().version


def test_the_awaited_one_does_the_same(served: DaemonProcess) -> None:
    async def scene() -> None:
        async with AsyncClient(served.url, served.token) as palyra:
            asked = [palyra.ask("hi") for _ in range(3)]
            answers: list[Answered] = await asyncio.gather(*asked)
            assert [each.text for each in answers] == ["hello there"] * 3
            with pytest.raises(RunBroke):
                await palyra.ask("fail")
            with pytest.raises(NotFound):
                await palyra.get_session("01ARZ3NDEKTSV4RRFFQ69G5FAV")
            assert (await palyra.list_models()).models[0].name == "scripted/s1"
            await palyra.remove_grant("01ARZ3NDEKTSV4RRFFQ69G5FAV")

    with pytest.raises(NotFound):
        asyncio.run(scene())


def test_the_javascript_one_does_the_same(served: DaemonProcess) -> None:
    found = told(
        node(
            served,
            """
const refused = async (work) => { try { await work(); } catch (error) { return error instanceof PalyraError && error.code; } };
let words = "";
const answered = await palyra.ask("hi", {on: (item) => { if (item.kind === "model.delta") words += item.text; }});
const approved = await palyra.ask("write", {on: (item) => {
  if (item.kind === "approval.requested") palyra.answer(item.event.approval_id, {decision: "allow"});
}});
const held = await palyra.resolveSession({key: "js"});
const again = await palyra.resolveSession({key: "js"});
const run = await palyra.getRun(answered.runId);
const listed = await palyra.listSessions({limit: 1});
console.log(JSON.stringify({
  text: answered.text, words: ["", "hello there"].includes(words), approved: approved.text,
  same: held.session_id === again.session_id, state: run.state, listed: listed.sessions.length,
  failed: await refused(() => palyra.ask("fail")),
  missing: await refused(() => palyra.getSession("01ARZ3NDEKTSV4RRFFQ69G5FAV")),
  away: await refused(() => new Palyra({url: "http://127.0.0.1:1"}).status()),
}));
""",
        )
    )
    assert found == {
        "text": "hello there", "words": True, "approved": "written", "same": True, "state": "done", "listed": 1,
        "failed": "run.failed", "missing": "not_found", "away": "unreachable",
    }  # fmt: skip


def test_all_of_them_see_every_entry_once_though_the_daemon_dies(
    served: DaemonProcess, client: Client, hold: Path
) -> None:
    session_id = client.resolve_session().session_id
    run = client.submit(session_id, text="hold")

    def waiting() -> list[int]:
        with Client(served.url, served.token) as palyra:
            return [
                item.seq
                for item in palyra.watch(session_id, until=run.run_id)
                if isinstance(item, Entry)
            ]

    async def awaited() -> list[int]:
        async with AsyncClient(served.url, served.token) as palyra:
            return [
                item.seq
                async for item in palyra.watch(session_id, until=run.run_id)
                if isinstance(item, Entry)
            ]

    in_node = node(
        served,
        f"""
const seen = [];
for await (const item of palyra.watch("{session_id}", {{until: "{run.run_id}"}})) {{
  if (item.seq) seen.push(item.seq);
  if (seen.length === 1) console.error("watching");
}}
console.log(JSON.stringify(seen));
""",
    )
    with ThreadPoolExecutor(2) as pool:
        watching = [pool.submit(waiting), pool.submit(lambda: asyncio.run(awaited()))]
        assert in_node.stderr is not None
        assert in_node.stderr.readline() == "watching\n"
        served.kill()
        served.restart(port=served.port)
        hold.touch()
        seen = [each.result(LONGEST_S) for each in watching]
    seen.append(told(in_node))
    everything = [entry.seq for entry in client.list_entries(session_id, limit=500).entries]
    assert seen == [everything] * 3
    assert everything == list(range(1, len(everything) + 1))


@pytest.mark.parametrize("awaiting", [False, True])
def test_a_daemon_whose_store_is_away_for_a_moment_is_watched_on(
    served: DaemonProcess, awaiting: bool
) -> None:
    session_id, entries = served.run("hi")
    last = entries[-1]
    away = b'{"error": {"code": "unavailable", "message": "the store is away", "retryable": true, "details": {}}}'
    stream = f"id: {last['seq']}\nevent: entry\ndata: {json.dumps(last)}\n\n".encode()
    answers = iter([(503, "application/json", away), (200, "text/event-stream", stream)])

    class Daemon(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = next(answers)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    async def awaited(url: str) -> list[int]:
        async with AsyncClient(url, "t") as palyra:
            return [
                item.seq
                async for item in palyra.watch(session_id, until=last["run_id"])
                if isinstance(item, Entry)
            ]

    with HTTPServer(("127.0.0.1", 0), Daemon) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        if awaiting:
            seen = asyncio.run(awaited(url))
        else:
            watched = Client(url, "t").watch(session_id, until=last["run_id"])
            seen = [item.seq for item in watched if isinstance(item, Entry)]
        server.shutdown()
    assert seen == [last["seq"]]


SKILL = "---\nname: greet\ndescription: greets people\n---\nSay hello.\n"


def test_what_is_not_json_both_ways_has_verbs_too(served: DaemonProcess, client: Client) -> None:
    session_id = client.ask("hi").session_id
    stored = client.store_file(session_id, b"some words", name="a.txt")
    assert (stored.name, stored.reads_as, stored.size) == ("a.txt", "text", 10)
    assert client.get_artifact(session_id, stored.artifact) == b"some words"
    assert b"palyra_" in client.metrics()
    lines = b"".join(client.export_journal(session_id=session_id)).splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert [each.event for each in client.verify_journal_events()][-1] == "report"
    assert client.get_entry(1).position == 1
    assert client.put_budget("all", tokens=10**12).terms.tokens == 10**12
    client.remove_budget("all")
    with pytest.raises(Unreachable):
        client.within(0.001).verify_journal()
    assert client.verify_journal().ok


def test_an_answer_is_of_the_type_that_its_status_has(
    served: DaemonProcess, client: Client
) -> None:
    folder = served.workspace / "greet"
    folder.mkdir()
    (folder / "SKILL.md").write_text(SKILL)
    proposal = client.within(120).install_skill(path=str(folder))
    assert isinstance(proposal, Proposal)
    made = client.within(120).install_skill(path=str(folder), confirm=proposal.digest)
    assert isinstance(made, ShownSkill)
    assert made.skill.record.name == "greet"


def test_the_awaited_one_streams_and_uploads(served: DaemonProcess) -> None:
    async def scene() -> None:
        async with AsyncClient(served.url, served.token) as palyra:
            session_id = (await palyra.ask("hi")).session_id
            stored = await palyra.store_file(session_id, b"some words", name="b.txt")
            assert await palyra.get_artifact(session_id, stored.artifact) == b"some words"
            pieces = [piece async for piece in palyra.export_journal(session_id=session_id)]
            assert json.loads(b"".join(pieces).splitlines()[0])["seq"] == 1
            assert [each.event async for each in palyra.verify_journal_events()][-1] == "report"
            assert b"palyra_" in await palyra.metrics()

    asyncio.run(scene())


def test_the_javascript_one_streams_and_uploads(served: DaemonProcess) -> None:
    found = told(
        node(
            served,
            """
const { sessionId } = await palyra.ask("hi");
const stored = await palyra.storeFile(sessionId, "some words", {name: "c.txt"});
const kept = await (await palyra.getArtifact(sessionId, stored.artifact)).text();
const events = [];
for await (const { event } of palyra.verifyJournalEvents()) events.push(event);
const lines = (await (await palyra.exportJournal({session_id: sessionId})).text()).trim().split("\\n");
const entry = await palyra.getEntry(1);
console.log(JSON.stringify({
  name: stored.name, kept, last: events.at(-1), first: JSON.parse(lines[0]).seq, position: entry.position,
}));
""",
        )
    )
    assert found == {
        "name": "c.txt",
        "kept": "some words",
        "last": "report",
        "first": 1,
        "position": 1,
    }
