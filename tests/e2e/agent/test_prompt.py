"""What the model is shown: the same beginning over a session, the project's notes, what is
remembered, and never too much.
"""

import asyncio
import copy
import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from palyra.agent.prompt.assembly import Assembler
from palyra.core.conversation import Conversation
from palyra.core.events import Call, InputReceived, ModelReplied, RunAccepted, ToolFinished
from palyra.core.ids import OWNER, CallId, RunId
from palyra.core.labels import untrusted
from palyra.core.messages import ModelRequest, Text, UserMessage
from palyra.core.run_progress import CallProgress, ModelTurn, RunProgress
from palyra.features.memory.model import NewMemory, Where
from palyra.features.memory.service import Origin
from palyra.features.project_notes.files import LARGEST
from palyra.models import token_count
from palyra.models.routing import Target
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from tests import inprocess
from tests.cli_terminal import palyra
from tests.daemon import start

READS = (Turn(calls=(ScriptedCall(name="fs.list", arguments={}),)), Turn(text="there is nothing"))


def _prefix(request: ModelRequest) -> str:
    return hashlib.sha256(msgspec.json.encode((request.instructions, request.tools))).hexdigest()


def _words(request: ModelRequest) -> str:
    return "\n".join(
        part.text
        for message in request.messages
        if isinstance(message, UserMessage)
        for part in message.parts
        if isinstance(part, Text)
    )


async def _assembled(daemon: Any, session_id: str) -> list[dict[str, Any]]:
    found = await inprocess.entries(daemon, session_id)
    return [inprocess.body(entry) for entry in found if entry.kind == "input.assembled"]


async def _accept(daemon: Any, *notes: Path) -> None:
    for note in notes:
        digest = hashlib.sha256(note.read_bytes()).hexdigest()
        await daemon.project_notes.accept(OWNER, str(note.parent), note.name, digest)


async def _talk(daemon: Any, where: Any, *texts: str) -> None:
    for text in texts:
        assert (
            await inprocess.finished(daemon, await inprocess.say(daemon, where, text))
        ).kind == "run.completed"


def test_the_beginning_is_the_same_in_every_turn_and_what_was_said_stays_as_it_was(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(lambda request: Turn(text=f"answer {len(request.messages)}"))

    async def run() -> None:
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "AGENTS.md").write_text("Use tabs.")
        async with inprocess.daemon(tmp_path, model) as daemon:
            where = await inprocess.session(daemon)
            await _accept(daemon, tmp_path / "work" / "AGENTS.md")
            await _talk(daemon, where, *(f"question {n}" for n in range(6)))
        async with inprocess.daemon(tmp_path, model) as daemon:
            await _talk(
                daemon,
                await inprocess.session(daemon, session_id=where.session_id),
                "after a restart",
            )

    asyncio.run(run())
    requests = list(model.requests)
    assert len(requests) == 7
    assert len({_prefix(request) for request in requests}) == 1
    assert "Use tabs." in requests[0].instructions
    for earlier, later in pairwise(requests):
        assert later.messages[: len(earlier.messages)] == earlier.messages


def test_tools_of_a_worker_are_offered_once_somebody_speaks_of_another_machine(
    tmp_path: Path,
) -> None:
    async def run() -> list[list[str]]:
        model = ScriptedModel([Turn(text="hi")] * 3)
        async with inprocess.daemon(tmp_path, model) as daemon:
            theirs = copy.copy(daemon.catalogue.get("shell.run"))
            theirs.spec = msgspec.structs.replace(theirs.spec, name="worker:attic/shell.run")
            daemon.catalogue.renew("worker:attic", (theirs,))
            where = await inprocess.session(daemon)
            for text in ("hi", "run the tests on attic", "thanks"):
                await _talk(daemon, where, text)
            return [[tool.name for tool in request.tools] for request in model.requests]

    first, second, third = asyncio.run(run())
    assert "worker:attic/shell.run" not in first
    assert "worker:attic/shell.run" in second
    # It stays: the beginning of the prompt is the same again.
    assert second == third


def test_an_empty_turn_costs_at_most_nineteen_hundred_tokens(tmp_path: Path) -> None:
    async def run() -> int:
        async with inprocess.daemon(tmp_path, [Turn(text="hi")]) as daemon:
            where = await inprocess.session(daemon)
            await _talk(daemon, where, "hi")
            request = model_request(daemon)
            # The pretended tools of tests are not part of the product.
            specs = [spec for spec in request.tools if not spec.name.startswith("test.")]
            tools = [
                {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
                for spec in specs
            ]
            return token_count.count(request.instructions) + token_count.count(
                json.dumps(tools, separators=(",", ":"))
            )

    def model_request(daemon: Any) -> ModelRequest:
        return list(daemon.models.provider(daemon.models.targets[0]).requests)[-1]

    assert asyncio.run(run()) <= 1_900


def test_the_notes_of_a_project_are_shown_and_seen_anew_when_they_change(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: Turn(text="yes"))
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "outside.md").write_text("stolen from outside")

    async def run() -> list[dict[str, Any]]:
        async with inprocess.daemon(tmp_path, model) as daemon:
            where = await inprocess.session(daemon)
            await _talk(daemon, where, "one")
            (work / "AGENTS.md").write_text("Always use tabs.")
            (work / "PALYRA.md").write_text("x" * (LARGEST + 10))
            (work / "CLAUDE.md").symlink_to(tmp_path / "outside.md")
            await _accept(daemon, work / "AGENTS.md", work / "PALYRA.md")
            await _talk(daemon, where, "two")
            (work / "AGENTS.md").write_text("Always use spaces, never tabs.")
            await _accept(daemon, work / "AGENTS.md")
            await _talk(daemon, where, "three")
            return await _assembled(daemon, where.session_id)

    none, first, second = asyncio.run(run())
    shown = [request.instructions for request in model.requests]
    assert [part["source"] for part in none["parts"]] == [
        "instructions",
        "tools",
        "conversation",
        "input",
    ]
    assert "Always use tabs." in shown[1]
    assert "stolen" not in "".join(shown)
    assert "never tabs" in shown[2]
    assert "Always use tabs." not in shown[2]
    project = next(part for part in first["parts"] if part["source"] == "project")
    cut, link = (
        f"PALYRA.md was cut off at {LARGEST} bytes",
        "CLAUDE.md left out: it is a symbolic link; use a regular file",
    )
    assert project["note"] == f"AGENTS.md, PALYRA.md; {cut}; {link}"
    assert project["label"]["confidentiality"] == "private"
    assert (
        "AGENTS.md" in next(part for part in second["parts"] if part["source"] == "project")["note"]
    )


def test_what_is_remembered_comes_with_the_question_it_answers_and_stays_there(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(
        lambda request: READS[
            len(request.messages) > 1 and request.messages[-1].__class__.__name__ == "ToolMessage"
        ]
    )

    async def run() -> list[dict[str, Any]]:
        async with inprocess.daemon(tmp_path, model, "[memory]\nembeddings = false\n") as daemon:
            where = await inprocess.session(daemon)
            await _talk(daemon, where, "what is the harbour fee in crowns?")
            place = Where(principal=OWNER)
            await daemon.memory.add(place, NewMemory(text="The harbour fee is 40 crowns"))
            held = await daemon.memory.add(
                place,
                NewMemory(text="Harbour fee rumours say 90 crowns"),
                Origin(label=untrusted("http://rumours.test")),
            )
            assert held.state == "review"
            await _talk(
                daemon,
                where,
                "what is the harbour fee in crowns?",
                "tell me about something else entirely",
            )
            return await _assembled(daemon, where.session_id)

    assembled = asyncio.run(run())
    with_memory = ["40 crowns" in _words(request) for request in model.requests]
    # Two turns per run: the second run is shown it, and later requests begin with what that was
    # sent.
    assert with_memory == [False, False, True, True, True, True]
    for before, after in pairwise(list(model.requests)[2:]):
        assert after.messages[: len(before.messages)] == before.messages
    assert _words(model.requests[-1]).count("40 crowns") == 1
    assert not any("90 crowns" in _words(request) for request in model.requests)
    memory = [
        [part for part in event["parts"] if part["source"] == "memory"] for event in assembled
    ]
    assert [len(parts) for parts in memory] == [0, 0, 1, 1, 1, 1]
    assert [len(event.get("kept_memory", [])) for event in assembled] == [0, 0, 0, 0, 1, 1]
    assert memory[2][0]["label"]["confidentiality"] == "private"
    assert re.fullmatch(r"[0-9A-Z]{26} [01]\.\d\d", memory[2][0]["note"])


def test_near_the_window_texts_are_counted_so_that_what_is_sent_fits(tmp_path: Path) -> None:
    """Characters of four tokens to a letter would be guessed at a sixteenth of what they cost."""
    model = ScriptedModel(lambda request: Turn(text="ok"))
    heavy = "ᚠᛇᚻ᛫ᛒᛦᚦ᛫ᚠᚱᚩᚠᚢᚱ᛫ᚠᛁᚱᚪ᛫ᚷᛖᚻᚹᛦᛚᚳᚢᛗ " * 12

    async def run() -> list[dict[str, Any]]:
        async with inprocess.daemon(tmp_path, model, window=8_000) as daemon:
            where = await inprocess.session(daemon)
            await _talk(daemon, where, *(f"{n} {heavy}" for n in range(12)))
            return await _assembled(daemon, where.session_id)

    assembled = asyncio.run(run())
    assert all(event["tokens"] <= event["budget"] for event in assembled)
    for request in model.requests:
        sent = token_count.count(
            request.instructions + msgspec.json.encode(request.tools).decode() + _words(request)
        )
        assert sent <= 6_000 * 1.02, "the window is 8,000, three quarters of it may be used"
    assert assembled[-1]["tokens"] > 3_000


def test_what_is_said_now_is_not_taken_for_a_turn_of_an_ancestor() -> None:
    # In a branch the parent's turns have places before the first.
    conversation = Conversation("branch")
    done = CallProgress(
        Call(CallId("c"), "fs.read", {}),
        finished=ToolFinished(call_id=CallId("c"), outcome="ok", text="word " * 2_000),
    )
    conversation.turns.append(
        ModelTurn(-2, "parent", -5, ModelReplied(turn=1, provider="p", model="m"), [done])
    )
    run = RunProgress(
        RunId("r"),
        "in_progress",
        RunAccepted(),
        3,
        [(4, InputReceived(submission_id="s", text="a"))],
    )
    assembled = Assembler(tuple).assemble(
        conversation, run, Target("p", "m", 128_000), "", continuing=False
    )
    tokens = {part.source: part.tokens for part in assembled.event.parts}
    assert tokens["input"] < 10
    assert tokens["conversation"] > 2_000


def test_the_bill_of_a_run_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "daemon"
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace" / "AGENTS.md").write_text("Use tabs.")
    script = {"*": [{"calls": [{"name": "fs.list", "arguments": {}}]}, {"text": "done"}]}
    with start(folder, script=script) as daemon:
        _, entries = daemon.run("what is here?")
        run = entries[0]["run_id"]
        turns = daemon.get(f"/v1/runs/{run}/tokens")["turns"]
        assert [turn["turn"] for turn in turns] == [1, 2]
        assert [part["source"] for part in turns[0]["parts"]] == [
            "instructions",
            "project",
            "tools",
            "conversation",
            "input",
        ]
        assert turns[1]["tokens"] > turns[0]["tokens"]
        assert sum(part["tokens"] for part in turns[1]["parts"]) == turns[1]["tokens"]
        shown = palyra(daemon.home, "why-tokens", run)
        assert shown.returncode == 0
        assert all(
            word in shown.stdout
            for word in ("turn 1:", "turn 2:", "project", "AGENTS.md", "instructions")
        )
        assert json.loads(palyra(daemon.home, "why-tokens", run, "--json").stdout)["turns"] == turns
        assert palyra(daemon.home, "why-tokens", run[:22].lower()).stdout == shown.stdout
        assert palyra(daemon.home, "why-tokens", "01M7FSFWVGW7EC7D3EZJ8SEVE9").returncode != 0
        lost = palyra(daemon.home, "why-tokens", "01M7FSFWVGW7")
        assert (lost.returncode, "palyra usage --by run" in lost.stderr) == (3, True)
