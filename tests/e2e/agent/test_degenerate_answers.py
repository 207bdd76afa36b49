"""Runs with models that give empty, endless, cut off or senseless answers: what people see and what
the tape says.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from palyra.core.events import Entry
from palyra.core.messages import ModelRequest, Text, UserMessage
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from tests.fake_provider import WRITERS, Answer, FakeProvider, Script
from tests.inprocess import body, daemon, entries, finished, say, session


def in_turn(*turns: Turn) -> Callable[[ModelRequest], Turn]:
    """These turns one after the other: an empty one leaves nothing in the conversation by which a
    script could know its place.
    """
    left = iter(turns)
    return lambda request: next(left)


def played(
    folder: Path, turns: Sequence[Turn] | Callable[[ModelRequest], Turn], settings: str = ""
) -> tuple[dict[str, Any], list[Entry], list[ModelRequest]]:
    """How a run with this model ended, its tape, and what the model was asked."""
    model = ScriptedModel(turns)

    async def work() -> tuple[dict[str, Any], list[Entry]]:
        async with asyncio.timeout(60), daemon(folder, model, settings) as inside:
            place = await session(inside)
            ended = await finished(inside, await say(inside, place, "do it"))
            return body(ended), await entries(inside, place.session_id)

    ended, tape = asyncio.run(work())
    return ended, tape, list(model.requests)


def said_last(request: ModelRequest) -> str:
    last = request.messages[-1]
    assert isinstance(last, UserMessage)
    return "\n".join(part.text for part in last.parts if isinstance(part, Text))


def flaws(tape: list[Entry]) -> list[str]:
    return [body(entry).get("flaw", "form") for entry in tape if entry.kind == "answer.refused"]


LIST = ScriptedCall(name="fs.list", arguments={"path": "."})


def test_an_empty_answer_is_asked_for_once_more(tmp_path: Path) -> None:
    ended, tape, requests = played(tmp_path, in_turn(Turn(), Turn(text="Here it is.")))
    assert (ended["kind"], ended["text"]) == ("run.completed", "Here it is.")
    assert flaws(tape) == ["empty"]
    assert "no text and no tool call" in said_last(requests[1])


def test_an_answer_that_stays_empty_is_said(tmp_path: Path) -> None:
    ended, tape, _ = played(tmp_path, lambda request: Turn(text=" \n"))
    assert (ended["kind"], ended["reason"]) == ("run.failed", "empty_answer")
    assert "empty answer twice" in ended["message"]
    assert flaws(tape) == ["empty"]


def test_an_answer_that_was_all_reasoning_is_asked_for_again(tmp_path: Path) -> None:
    thought = Turn(reasoning="hm " * 50, stop="length")
    ended, _, requests = played(tmp_path, in_turn(thought, Turn(text="42")))
    assert ended["text"] == "42"
    assert "all its tokens were used" in said_last(requests[1])


def test_an_answer_cut_at_its_length_is_continued_and_joined(tmp_path: Path) -> None:
    turns = [
        Turn(text="one, ", stop="length"),
        Turn(text="two, ", stop="length"),
        Turn(text="three."),
    ]
    ended, tape, requests = played(tmp_path, turns)
    assert ended["text"] == "one, two, three."
    assert "Continue exactly" in said_last(requests[1])
    assert [entry.kind for entry in tape].count("model.replied") == 3


def test_continuing_has_an_end(tmp_path: Path) -> None:
    number = iter(range(100))
    ended, _, requests = played(
        tmp_path, lambda request: Turn(text=f"part {next(number)}, ", stop="length")
    )
    assert ended["text"].startswith("part 0, part 1, part 2, part 3, ")
    assert "incomplete" in ended["text"]
    assert len(requests) == 4


@pytest.mark.parametrize("arguments", ['{"path": "a", "content": "b"', "", '{"path": "a'])
def test_a_call_cut_at_its_length_is_not_made(tmp_path: Path, arguments: str) -> None:
    cut = ScriptedCall(name="fs.write", arguments=arguments)
    ended, tape, _ = played(tmp_path, [Turn(calls=(cut,), stop="length"), Turn(text="Too long.")])
    assert ended["text"] == "Too long."
    kinds = [entry.kind for entry in tape]
    assert "tool.started" not in kinds
    assert "approval.requested" not in kinds
    (decided,) = (body(entry) for entry in tape if entry.kind == "tool.decided")
    assert "cut off" in decided["reason"]


def test_a_loop_is_told_and_then_ends_the_run(tmp_path: Path) -> None:
    ended, tape, requests = played(tmp_path, lambda request: Turn(calls=(LIST,)))
    assert (ended["kind"], ended["reason"]) == ("run.failed", "loop")
    assert "same tool call" in ended["message"]
    assert flaws(tape) == ["loop"]
    assert "You are in a loop" in said_last(requests[3])
    assert len(requests) == 4


def test_a_loop_that_ends_when_told_is_no_failure(tmp_path: Path) -> None:
    turns = [Turn(calls=(LIST,))] * 3 + [Turn(text="The folder is empty.")]
    ended, tape, _ = played(tmp_path, turns)
    assert ended["text"] == "The folder is empty."
    assert flaws(tape) == ["loop"]


def test_wrong_arguments_show_the_schema_and_then_end_the_run(tmp_path: Path) -> None:
    number = iter(range(100))
    ended, tape, requests = played(
        tmp_path,
        lambda request: Turn(
            calls=(ScriptedCall(name="fs.read", arguments={f"file{next(number)}": "x"}),)
        ),
    )
    assert (ended["kind"], ended["reason"]) == ("run.failed", "arguments")
    assert "wrong names or arguments" in ended["message"]
    assert flaws(tape) == ["arguments"]
    told = said_last(requests[3])
    assert '"path"' in told
    assert "look like this" in told
    assert "tool.started" not in [entry.kind for entry in tape]


def test_repaired_arguments_are_on_the_tape(tmp_path: Path) -> None:
    call = ScriptedCall(name="fs.list", arguments="{'path': '.',}")
    _, tape, _ = played(tmp_path, [Turn(calls=(call,)), Turn(text="Done.")])
    (replied,) = (body(each)["calls"] for each in tape if body(each).get("calls"))
    assert replied[0]["arguments"] == {"path": "."}
    assert replied[0]["repaired"] == "single quotes, trailing comma"
    assert "tool.started" in [entry.kind for entry in tape]


def test_a_stream_that_repeats_itself_is_stopped_and_told(tmp_path: Path) -> None:
    turns = [Turn(text=("I will read it now. ",) * 3000), Turn(text="It is empty.")]
    ended, tape, requests = played(tmp_path, turns)
    assert ended["text"] == "It is empty."
    first = next(body(entry) for entry in tape if entry.kind == "model.replied")
    assert first["stop"] == "repetition"
    assert len(first["text"]) < 5_000
    assert "repeated itself" in said_last(requests[1])


def test_a_model_that_only_repeats_itself_ends_the_run(tmp_path: Path) -> None:
    ended, _, requests = played(tmp_path, lambda request: Turn(text=("again and ",) * 5000))
    assert (ended["kind"], ended["reason"]) == ("run.failed", "repetition")
    assert len(requests) == 2


def asked(folder: Path, answers: list[Answer]) -> tuple[dict[str, Any], list[Entry], str]:
    """How a run with a server that answers like this ended, its tape, and the server's address."""

    async def work() -> tuple[dict[str, Any], list[Entry], str]:
        async with asyncio.timeout(60), FakeProvider(answers) as server:
            settings = f"""
[providers.local]
kind = "openai-chat"
base_url = "{server.url}"
models = ["small"]
"""
            async with daemon(folder, [], settings) as inside:
                place = await session(inside)
                run = await say(inside, place, "do it", model="local/small")
                ended = await finished(inside, run)
                return body(ended), await entries(inside, place.session_id), server.url

    return asyncio.run(work())


def _without_end(*text: str) -> Answer:
    """A stream that ends before its finish reason."""
    lines = WRITERS["openai-chat"](Script(text=text)).split(b"\n\n")
    kept = [line for line in lines if b"[DONE]" not in line and b'"finish_reason":"' not in line]
    kept = [line for line in kept if b'"finish_reason": "' not in line]
    return Answer(b"\n\n".join(kept) + b"\n\n")


def test_what_came_before_a_stream_ended_early_is_kept_and_continued(tmp_path: Path) -> None:
    answers = [
        _without_end("The first half"),
        Answer(WRITERS["openai-chat"](Script(text=(" and the second.",)))),
    ]
    ended, tape, _ = asked(tmp_path, answers)
    assert ended["text"] == "The first half and the second."
    stops = [body(entry).get("stop", "end") for entry in tape if entry.kind == "model.replied"]
    assert stops == ["cut", "end"]


def test_a_server_that_never_sends_a_finish_reason_still_answers(tmp_path: Path) -> None:
    ended, _, _ = asked(tmp_path, [_without_end("Here you are.")])
    assert (ended["kind"], ended["text"]) == ("run.completed", "Here you are.")


@pytest.mark.parametrize("status", [200, 302, 404])
def test_a_web_page_is_not_a_model_server(tmp_path: Path, status: int) -> None:
    page = Answer(b"<!doctype html><html><title>nginx</title></html>", status, "text/html")
    ended, tape, url = asked(tmp_path, [page])
    assert (ended["kind"], ended["reason"]) == ("run.failed", "model_not_a_model_server")
    assert f"{url}/chat/completions" in ended["message"]
    assert "not a model server" in ended["message"]
    assert [entry.kind for entry in tape].count("model.failed") == 1


def test_a_model_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    refused = {"error": {"message": "model 'small' not found, try pulling it first"}}
    listed = {"object": "list", "data": [{"id": "qwen2.5:7b"}, {"id": "gemma2:2b"}]}
    ended, _, _ = asked(
        tmp_path,
        [
            Answer(json.dumps(refused).encode(), 404, "application/json"),
            Answer(json.dumps(listed).encode(), 200, "application/json"),
        ],
    )
    assert (ended["kind"], ended["reason"]) == ("run.failed", "model_model_not_found")
    assert "qwen2.5:7b, gemma2:2b" in ended["message"]
