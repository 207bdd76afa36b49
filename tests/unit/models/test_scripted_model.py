"""The scripted model: where it is in its script is read off the request, so it survives whatever
kills its process.
"""

import asyncio
import json
from pathlib import Path

import pytest

from palyra.core.errors import InvalidInput
from palyra.core.messages import (
    AssistantMessage,
    Image,
    ModelCall,
    ModelFailure,
    ModelReply,
    ModelRequest,
    Text,
    ToolMessage,
    Usage,
    UserMessage,
)
from palyra.models.scripted import (
    Script,
    ScriptedCall,
    ScriptedFailure,
    ScriptedModel,
    StreamPause,
    Turn,
)

WRITE = ScriptedCall(name="fs.write", arguments={"path": "a.txt", "content": "a"})


def request(*messages: object) -> ModelRequest:
    return ModelRequest(model="scripted-1", instructions="", messages=messages)  # type: ignore[arg-type]


def user(text: str) -> UserMessage:
    return UserMessage((Text(text),))


def ask(model: ScriptedModel, *messages: object) -> tuple[ModelReply, list[tuple[str, str]]]:
    shown: list[tuple[str, str]] = []
    reply = asyncio.run(
        asyncio.wait_for(
            model.stream(request(*messages), lambda channel, text: shown.append((channel, text))),
            30,
        )
    )
    return reply, shown


def test_deltas_reasoning_and_calls_are_shown_in_order_and_returned_whole() -> None:
    turn = Turn(
        reasoning="thinking",
        text=("one ", "two"),
        calls=(WRITE, ScriptedCall(name="fs.list", id="mine")),
    )
    reply, shown = ask(ScriptedModel([turn]), user("go"))
    assert shown == [
        ("reasoning", "thinking"),
        ("text", "one "),
        ("text", "two"),
        ("call", "fs.write"),
        ("call", "fs.list"),
    ]
    assert reply == ModelReply(
        text="one two",
        reasoning="thinking",
        calls=(
            ModelCall("call_0_0", "fs.write", '{"path":"a.txt","content":"a"}'),
            ModelCall("mine", "fs.list", "{}"),
        ),
        stop="tool_calls",
        usage=Usage(input_tokens=1, output_tokens=12, reasoning_tokens=2),
        model="scripted-1",
    )


def test_the_turn_is_found_by_the_replies_already_in_the_conversation() -> None:
    turns = [Turn(calls=(WRITE,)), Turn(text="second"), Turn(text="third")]
    history = [
        user("go"),
        AssistantMessage(calls=(ModelCall("c", "fs.write", "{}"),)),
        ToolMessage("c", "fs.write", "ok"),
        AssistantMessage(text="second"),
        user("more"),
    ]
    # A new object each time, as after a crash.
    assert ask(ScriptedModel(turns), *history[:1])[0].calls[0].name == "fs.write"
    assert ask(ScriptedModel(turns), *history[:3])[0].text == "second"
    assert ask(ScriptedModel(turns), *history)[0].text == "third"


def test_the_latest_trigger_decides_and_other_messages_continue_its_script() -> None:
    script = Script(
        {
            "script: a": (Turn(text="a1"), Turn(text="a2")),
            "script: b": (Turn(text="b1"),),
            "*": (Turn(text="else"),),
        }
    )
    model = ScriptedModel(script)
    assert ask(model, user("hello"))[0].text == "else"
    assert ask(model, user("script: a\nwith more below"))[0].text == "a1"
    assert ask(model, user("script: a"), AssistantMessage(text="a1"), user("go on"))[0].text == "a2"
    assert (
        ask(model, user("script: a"), AssistantMessage(text="a1"), user("script: b"))[0].text
        == "b1"
    )


def test_a_trigger_is_found_in_any_text_part_of_a_message() -> None:
    message = UserMessage(
        (Text("<context>x</context>"), Image("image/png", b""), Text("script: a"))
    )
    assert (
        ask(ScriptedModel(Script({"script: a": (Turn(text="found"),)})), message)[0].text == "found"
    )


@pytest.mark.parametrize(
    ("script", "messages"),
    [
        (Script.of([Turn(text="only")]), [user("go"), AssistantMessage(text="only"), user("more")]),
        (Script({"script: a": ()}), [user("something else")]),
    ],
)
def test_a_script_that_has_nothing_to_say_fails_loudly(
    script: Script, messages: list[object]
) -> None:
    with pytest.raises(ModelFailure) as caught:
        ask(ScriptedModel(script), *messages)
    assert caught.value.failure == "bad_request"


def test_a_turn_fails_as_often_as_it_says_and_then_succeeds() -> None:
    model = ScriptedModel(
        [Turn(text="fine", fail=ScriptedFailure(failure="overloaded", times=2, retry_after_ms=7))]
    )
    for _ in range(2):
        with pytest.raises(ModelFailure) as caught:
            ask(model, user("go"))
        assert (caught.value.failure, caught.value.retry_after_ms) == ("overloaded", 7)
    assert ask(model, user("go"))[0].text == "fine"


def test_a_failure_without_a_number_lasts_and_can_come_after_some_text() -> None:
    model = ScriptedModel(
        [Turn(text=("shown", "never"), fail=ScriptedFailure(failure="network", after=1))]
    )
    for _ in range(3):
        shown: list[str] = []
        with pytest.raises(ModelFailure):
            asyncio.run(
                model.stream(
                    request(user("go")), lambda channel, text, shown=shown: shown.append(text)
                )
            )  # type: ignore[misc]
        assert shown == ["shown"]


def test_a_function_of_the_request_can_be_the_script() -> None:
    model = ScriptedModel(lambda asked: Turn(text=f"{len(asked.messages)} messages"), name="second")
    assert model.name == "second"
    assert ask(model, user("one"), AssistantMessage(), user("two"))[0].text == "3 messages"
    assert len(model.requests) == 1


def test_arguments_given_as_text_stay_as_broken_as_they_are() -> None:
    reply, _ = ask(
        ScriptedModel([Turn(calls=(ScriptedCall(name="fs.read", arguments='{"path": '),))]),
        user("go"),
    )
    assert reply.calls[0].arguments == '{"path": '


def test_a_hold_stops_the_stream_in_the_middle_until_it_is_released() -> None:
    async def scenario() -> list[str]:
        hold, shown = StreamPause(), list[str]()
        model = ScriptedModel(
            [Turn(text=("a", "b", "c"), hold="middle", hold_after=2)], holds={"middle": hold}
        )
        task = asyncio.create_task(
            model.stream(request(user("go")), lambda channel, text: shown.append(text))
        )
        await asyncio.wait_for(hold.reached.wait(), 30)
        assert shown == ["a", "b"]
        hold.released.set()
        assert (await asyncio.wait_for(task, 30)).text == "abc"
        return shown

    assert asyncio.run(scenario()) == ["a", "b", "c"]


def test_a_hold_by_path_says_that_it_is_reached_and_ends_when_the_file_appears(
    tmp_path: Path,
) -> None:
    gate, reached = tmp_path / "gate", tmp_path / "gate.reached"

    async def scenario() -> None:
        model = ScriptedModel([Turn(text=("a", "b"), hold=str(gate), hold_after=1)])
        task = asyncio.create_task(model.stream(request(user("go")), lambda channel, text: None))
        while not reached.exists():
            assert not task.done()
            await asyncio.sleep(0)
        gate.touch()
        assert (await task).text == "ab"

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_cancelling_a_held_stream_ends_it() -> None:
    async def scenario() -> None:
        hold = StreamPause()
        model = ScriptedModel([Turn(text="a", hold="start")], holds={"start": hold})
        task = asyncio.create_task(model.stream(request(user("go")), lambda channel, text: None))
        await asyncio.wait_for(hold.reached.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 30)

    asyncio.run(scenario())


def test_a_script_loads_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    turns = [
        {
            "text": ["wri", "ting"],
            "calls": [{"name": "fs.write", "arguments": {"path": "a.txt", "content": "a"}}],
        },
        {
            "text": "done",
            "usage": {"input_tokens": 5, "output_tokens": 1},
            "stop": "length",
            "hold": "gate",
            "hold_after": 1,
        },
        {"fail": {"failure": "rate_limited", "times": 1}},
    ]
    path.write_text(json.dumps({"script: three": turns}))
    assert Script.load(path) == Script(
        {
            "script: three": (
                Turn(text=("wri", "ting"), calls=(WRITE,)),
                Turn(
                    text="done",
                    usage=Usage(input_tokens=5, output_tokens=1),
                    stop="length",
                    hold="gate",
                    hold_after=1,
                ),
                Turn(fail=ScriptedFailure(failure="rate_limited", times=1)),
            )
        }
    )


@pytest.mark.parametrize(
    "text", ["{", '{"a": [{"txt": "x"}]}', '{"a": {}}', '{"a": [{"fail": {"failure": "mood"}}]}']
)
def test_a_broken_script_file_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=r"script\.json"):
        Script.load(path)


def test_a_missing_script_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"none\.json"):
        Script.load(tmp_path / "none.json")
