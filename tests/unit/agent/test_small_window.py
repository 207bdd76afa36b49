"""A prompt for a small window fits, keeps the user's words, and is the same for the same tape."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.agent.prompt import small_offer, small_window
from palyra.agent.prompt.assembly import Assembled, Assembler
from palyra.agent.prompt.run_context import RecalledMemory, RunContext, render
from palyra.agent.prompt.sources import Index, Project
from palyra.agent.prompt.token_sizes import Measure
from palyra.core.conversation import Conversation
from palyra.core.events import Call, InputReceived, ModelReplied, RunAccepted, ToolFinished
from palyra.core.ids import ArtifactId, CallId, RunId
from palyra.core.labels import CLEAN
from palyra.core.messages import ModelRequest, Text, ToolMessage, ToolSchema, UserMessage
from palyra.core.run_progress import CallProgress, ModelTurn, RunProgress, UserTurn
from palyra.core.tools import ToolSpec
from palyra.models import token_count
from palyra.models.routing import Target
from palyra.tools import standard
from palyra.tools.paths import PathGuard

WINDOWS = (4_096, 6_000, 8_192, 16_384)


def _more(number: int) -> ToolSpec:
    words = ("calendar", "invoice", "weather", "ticket", "photo")
    return ToolSpec(
        name=f"{words[number % 5]}.find{number}",
        description=f"Find a {words[number % 5]} by its number. " + "It does this and that. " * 20,
        parameters={
            "type": "object",
            "properties": {
                "number": {"type": "integer", "description": "Of it. As printed on it."},
                "description": {"type": "string", "description": "What it says, if known"},
            },
            "required": ["number"],
        },
        effect="pure",
    )


OWN = tuple(tool.spec for tool in standard.tools(PathGuard(()), lambda *_: None))
SPECS = (*OWN, *map(_more, range(40)))


def _step(seq: int, tool: str, result: str, arguments: dict[str, Any], run: str) -> ModelTurn:
    call = CallProgress(
        Call(CallId(f"c{seq}"), tool, arguments),
        finished=ToolFinished(call_id=CallId(f"c{seq}"), outcome="ok", text=result),
    )
    accepted = 1_000 if run == "now" else seq // 10 * 10
    return ModelTurn(seq, run, accepted, ModelReplied(turn=1, provider="p", model="m"), [call])


def _running(text: str, *turns: Any) -> tuple[Conversation, RunProgress]:
    conversation = Conversation("s")
    conversation.turns.extend(turns)
    event = InputReceived(submission_id="sub", text=text)
    run = RunProgress(RunId("now"), "in_progress", RunAccepted(), 1_000)
    if any(isinstance(turn, ModelTurn) and turn.run_id == "now" for turn in turns):
        place = next(at for at, turn in enumerate(turns) if turn.run_id == "now")
        conversation.turns.insert(place, UserTurn(1_001, "now", 1_000, (event,)))
    else:
        run.inputs.append((1_001, event))
    return conversation, run


def _assembled(
    conversation: Conversation,
    run: RunProgress,
    window: int,
    around: RunContext = RunContext(),  # noqa: B008 - frozen
    specs: tuple[ToolSpec, ...] = SPECS,
    skills: str = "",
) -> Assembled:
    assembler, sizes = Assembler(lambda: specs, lambda: Index(skills)), Measure()
    target = Target("local", "tiny", window)

    async def work() -> Assembled:
        await assembler.measure(conversation, run, target, around, sizes)
        return assembler.assemble(
            conversation, run, target, "/w", continuing=False, around=around, sizes=sizes
        )

    return asyncio.run(work())


def _words(request: ModelRequest) -> str:
    said = [request.instructions, msgspec.json.encode(request.tools).decode()]
    for message in request.messages:
        match message:
            case UserMessage(parts=parts):
                said += [part.text for part in parts if isinstance(part, Text)]
            case ToolMessage(text=text):
                said.append(text)
            case _:
                said += [message.text, *(call.name + call.arguments for call in message.calls)]
    return "\n".join(said)


TEXT = st.one_of(
    st.text(max_size=300).map(lambda text: text * 20),
    st.sampled_from(("word " * 3_000, "x9Q/" * 2_000, "漢字かな" * 800, "🎉" * 900, "", "ok")),
)
STEPS = st.lists(
    st.tuples(st.sampled_from([spec.name for spec in SPECS]), TEXT, TEXT, st.booleans()),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from((2_048, *WINDOWS)), TEXT, STEPS, TEXT, TEXT)
def test_a_fitted_prompt_never_exceeds_the_budget_and_keeps_the_users_words(
    window: int, said: str, steps: list[tuple[str, str, str, bool]], notes: str, remembered: str
) -> None:
    turns = [
        _step(10 + place * 10, tool, result, {"text": given}, "now" if now else f"r{place}")
        for place, (tool, result, given, now) in enumerate(sorted(steps, key=lambda each: each[3]))
    ]
    memory = tuple(
        RecalledMemory(f"m{number}", "fact", remembered[:400], CLEAN, 0.5) for number in range(6)
    )
    around = RunContext(Project(notes, CLEAN, "AGENTS.md"), memory, render(memory))
    built = _assembled(*_running(f"begin {said} end", *turns), window, around, skills=notes)
    assert f"begin {said} end" in _words(built.request)
    if not built.too_small:
        assert built.event.tokens <= built.event.budget
        assert token_count.count(_words(built.request)) <= built.event.budget
    again = _assembled(*_running(f"begin {said} end", *turns), window, around, skills=notes)
    assert again.event.digest == built.event.digest


@pytest.mark.parametrize("window", WINDOWS)
def test_there_is_room_for_a_message_beside_many_tools_and_long_notes(window: int) -> None:
    around = RunContext(Project("Use tabs. " * 4_000, CLEAN, "AGENTS.md"))
    built = _assembled(*_running("list the files"), window, around)
    offered = [tool.name for tool in built.request.tools]
    assert not built.too_small
    assert [name for name in small_offer.CORE if name in {spec.name for spec in OWN}] == [
        name for name in small_offer.CORE if name in offered
    ]
    notes = {part.source: part.note for part in built.event.parts}
    assert "cut to fit the window" in notes["project"]
    missing = len(SPECS) - len(offered)
    assert notes["tools"].startswith(f"short schemas; {missing} left out" if missing else "short")
    assert notes["instructions"] == f"fitted to a window of {window:,} tokens"
    assert built.event.offered == (tuple(offered) if missing else ())


def test_a_window_that_is_too_small_is_told_which_one_is_needed() -> None:
    built = _assembled(*_running("hi"), 1_024)
    assert "local/tiny is 1,024 tokens" in built.too_small
    assert "needs one of 2,048" in built.too_small
    assert "providers.local.context_tokens" in built.too_small
    assert not _assembled(*_running("hi"), 2_048).too_small


def test_a_large_window_gets_everything_as_it_is() -> None:
    around = RunContext(Project("Use tabs. " * 400, CLEAN, "AGENTS.md"))
    built = _assembled(*_running("hi"), 128_000, around)
    assert built.request.tools == tuple(
        ToolSchema(spec.name, spec.description, spec.parameters) for spec in SPECS
    )
    assert around.project.text in built.request.instructions
    assert (built.event.fitted, built.event.offered) == (False, ())
    assert [part.note for part in built.event.parts] == ["", "AGENTS.md", "", "", ""]


def test_words_of_the_message_and_calls_so_far_bring_their_tools() -> None:
    plain = _assembled(*_running("hello"), 4_096).event.offered
    asked = _assembled(*_running("look for the invoice 12"), 4_096).event.offered
    assert not [name for name in plain if name.startswith("invoice")]
    assert [name for name in asked if name.startswith("invoice")]
    called = _running("go on", _step(10, "photo.find4", "a cat", {}, "before"))
    assert "photo.find4" in _assembled(*called, 4_096).event.offered


def test_the_tools_of_a_session_grow_and_do_not_flip() -> None:
    """A prompt begins with its tools: when they change, nothing of it is cached any more."""
    sets: list[tuple[str, ...]] = []
    conversation = Conversation("s")
    for number, said in enumerate(("hello", "the invoice 1", "thanks", "hello", "the invoice 1")):
        run = RunProgress(RunId(f"r{number}"), "in_progress", RunAccepted(), number * 10 + 1)
        run.inputs.append((number, InputReceived(submission_id="sub", text=said)))
        offered = _assembled(conversation, run, 4_096).event.offered
        conversation.offered, conversation.offered_in = offered, run.run_id
        sets.append(offered)
    assert set(sets[0]) < set(sets[1])
    assert sets[1] == sets[2] == sets[3] == sets[4]


def test_within_a_run_the_tools_stay_whatever_is_said() -> None:
    conversation, run = _running("hello")
    conversation.offered = _assembled(conversation, run, 4_096).event.offered
    conversation.offered_in = run.run_id
    run.inputs.append((1_002, InputReceived(submission_id="sub", text="the weather, the ticket")))
    assert _assembled(conversation, run, 4_096).event.offered == conversation.offered


def test_a_short_schema_has_what_is_required_and_names_the_rest() -> None:
    tool = small_offer.short(
        ToolSchema(SPECS[-1].name, SPECS[-1].description, SPECS[-1].parameters)
    )
    assert tool.description == "Find a photo by its number; also takes description."
    assert tool.parameters == {
        "type": "object",
        "properties": {"number": {"description": "Of it.", "type": "integer"}},
        "required": ["number"],
    }
    assert small_offer.short(tool) == tool


def test_a_short_schema_names_the_values_of_optional_parameters() -> None:
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "kind": {"enum": ["fact", "preference"]},
            "long": {"enum": ["a value of many words", "another value of many words", "more"] * 2},
        },
        "required": ["text"],
    }
    tool = small_offer.short(ToolSchema("note", "Keep a note.", schema))
    assert tool.description == "Keep a note; also takes kind (fact|preference), long."
    assert small_offer.short(tool) == tool


def test_a_cut_result_says_how_to_read_on() -> None:
    long = "a line of text\n" * 900
    step = _step(10, "fs.read", long, {}, "now")
    done = step.calls[0].finished
    assert done is not None
    stored = msgspec.structs.replace(done, artifact=ArtifactId("a" * 64), size=13_500)
    step.calls[0].finished = stored
    conversation, run = _running("read it", step, _step(20, "fs.list", long, {}, "now"))
    built = _assembled(conversation, run, 4_096)
    results = [each.text for each in built.request.messages if isinstance(each, ToolMessage)]
    assert f"13500 bytes in all; read on with artifact.read, id {'a' * 64}]" in results[0]
    assert "13500 characters in all; ask for a smaller part]" in results[1]
    assert "2 results cut to fit the window" in built.event.parts[-2].note


def test_a_result_is_stored_apart_when_the_window_will_not_show_it() -> None:
    assert small_window.result_bytes(0, 8_192) == 8_192
    assert small_window.result_bytes(3_072, 8_192) == 2_304
    assert small_window.result_bytes(12_288, 8_192) == 8_192
