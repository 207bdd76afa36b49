"""What models with small windows are sent, and what becomes of replies that only describe a call."""

from pathlib import Path
from typing import Any

import pytest

from palyra.core.messages import AssistantMessage, ModelCall, Text, ToolMessage, UserMessage
from tests.contract.models.test_text_tools import CALL, HELLO, asked, run, wrote
from tests.fake_provider import Answer, FakeProvider, Request
from tests.inprocess import body, daemon, entries, finished, say, session
from tests.model_reading import asks

OBJECT = '{"name": TOOL, "arguments": {…}}'
ANSWER = '{"name": "answer", "arguments": {"text": "Hello!"}}'
RESULT = (
    AssistantMessage("", calls=(ModelCall("1", "fs.list", "{}"),)),
    ToolMessage("1", "fs.list", "a.txt"),
)
FAILED = (RESULT[0], ToolMessage("1", "fs.list", "no such folder", is_error=True))


def _last(request: Request) -> str:
    said = request.json()["messages"][-1]["content"]
    return said if isinstance(said, str) else "".join(part["text"] for part in said)


@pytest.mark.parametrize(
    ("behind", "told"),
    [
        ((), "If no tool can help"),
        (RESULT, "The request was: hi\nIf something"),
        (FAILED, "Put right what was wrong"),
    ],
)
def test_in_a_small_window_the_last_message_ends_with_what_the_reply_may_be(
    behind: tuple[Any, ...], told: str
) -> None:
    messages = (*HELLO, *behind)
    _, _, (sent,), _ = asked(wrote("hi"), asks("fs.list", messages=messages, fitted=True), "text")
    assert OBJECT in _last(sent)
    assert told in _last(sent)
    assert sum(OBJECT in str(each["content"]) for each in sent.json()["messages"]) == 1
    # Larger models keep their messages as they are.
    _, _, (plain,), _ = asked(wrote("hi"), asks("fs.list", messages=messages), "text")
    assert OBJECT not in plain.body.decode()


def test_an_answer_that_was_asked_for_as_an_object_is_text() -> None:
    fitted = asks("fs.list", messages=HELLO, fitted=True)
    reply, shown, _, _ = asked(wrote(ANSWER), fitted, "text")
    assert (reply.text, shown, reply.calls, reply.stop) == ("Hello!", "Hello!", (), "end")
    # A tool of this name is a tool.
    named = asks("fs.list", "answer", messages=HELLO, fitted=True)
    reply, shown, (sent,), _ = asked(wrote(ANSWER), named, "text")
    assert OBJECT not in _last(sent)
    assert [call.name for call in reply.calls] == ["answer"]
    assert shown == ""


def test_the_instructions_show_one_call_with_a_tool_that_is_offered() -> None:
    tools = asks("fs.list", messages=HELLO).tools
    needs = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    request = asks(tools=(*tools, type(tools[0])("fs.read", "reads", needs)), messages=HELLO)
    _, _, (sent,), _ = asked(wrote("hi"), request, "text")
    system = sent.json()["messages"][0]["content"]
    assert 'this reply calls fs.read:\n<tool_call>\n{"name":"fs.read"' in system


SETTINGS = """
[providers.local]
kind = "openai-chat"
base_url = "{url}"
models = ["small"]
tools_of = ["small=text"]
"""


def test_a_model_that_describes_its_call_is_asked_for_it_once(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        told = request.body.decode()
        if "<tool_response name=" in told:
            return wrote("There is seen.txt")
        return wrote(CALL if "Nothing was done" in told else "You can use the `fs.list` tool.")

    async def work() -> tuple[dict[str, Any], list[Any]]:
        async with FakeProvider(answer) as server:
            settings = SETTINGS.format(url=server.url)
            async with daemon(tmp_path, [], settings) as inside:
                place = await session(inside)
                ended = await finished(
                    inside, await say(inside, place, "what is here?", model="local/small")
                )
                return body(ended), await entries(inside, place.session_id)

    ended, tape = run(work)
    assert ended["text"] == "There is seen.txt"
    (refused,) = [body(entry) for entry in tape if entry.kind == "answer.refused"]
    assert refused["flaw"] == "described"
    assert "tool.started" in [entry.kind for entry in tape]


def test_who_only_wanted_to_know_gets_the_second_answer(tmp_path: Path) -> None:
    async def work() -> tuple[dict[str, Any], list[Any], list[Request]]:
        async with FakeProvider(wrote("It is called `fs.list`.")) as server:
            settings = SETTINGS.format(url=server.url)
            async with daemon(tmp_path, [], settings) as inside:
                place = await session(inside)
                ended = await finished(
                    inside, await say(inside, place, "which tool lists?", model="local/small")
                )
                return body(ended), await entries(inside, place.session_id), server.requests

    ended, tape, requests = run(work)
    assert ended["text"] == "It is called `fs.list`."
    assert [entry.kind for entry in tape].count("answer.refused") == 1
    assert len(requests) == 2


def test_messages_without_tools_are_not_touched() -> None:
    plain = asks(messages=(UserMessage((Text("hi"),)),), fitted=True)
    _, _, (sent,), _ = asked(wrote("hello"), plain, "text")
    assert _last(sent) == "hi"
