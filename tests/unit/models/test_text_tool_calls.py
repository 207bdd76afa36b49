"""Tool calls written as text: the same calls wherever the stream is cut, and none from a quote."""

import json
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from palyra.models.openai_chat_stream import ChatParser
from palyra.models.request import ResponseReader
from palyra.models.text_tools.calls import Offered, TextCall
from palyra.models.text_tools.lines import Wanted
from palyra.models.text_tools.scan import Read, Scanner
from palyra.models.wire_format import ToolNames
from tests.model_reading import ENDPOINT

_TOOLS = ("fs.read", "fs.write", "shell.run", "memory.search")
_SCHEMAS: dict[str, dict[str, Any]] = {
    name: {"properties": {"content": {"type": "string"}, "path": {"type": "string"}}}
    for name in _TOOLS
}
_OFFERED = Offered(
    {**{name: name for name in _TOOLS}, **{name.replace(".", "_"): name for name in _TOOLS}},
    _SCHEMAS,
)
_STRINGS = (
    "notes.txt",
    "",
    "naïve café — 文字 🙂",
    "a } b ] c { d [",
    "quoted \"text\" and 'more'",
    "line one\nline two\n",
    "</tool_call> inside",
    "<tool_call>{}</tool_call>",
    "[TOOL_CALLS][] [ARGS]",
    "```\ncode\n```",
    "<|python_tag|> and <|eot_id|>",
    "Observation: none\nAction: fs.read",
    "C:\\folder\\new",
    "tab\tand \\ backslash \\\\",
    "<think>not a thought</think>",
)
_BEFORE = ("", "I will look.\n", "First line.\n\nSecond: a < b, [x], {y}, `z`.\n\n", "Ünïcödé ⚙\n")
_THOUGHTS = (
    "",
    "<think>Let me see.</think>\n\n",
    "<thinking>\nA <tool_call> would help.\n</thinking>\n",
    "[THINK]hm[/THINK]",
    "<reasoning>a\n```json\n{}\n```</reasoning>\n",
)
Call = tuple[str, dict[str, Any]]


def _arguments(rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key in rng.sample(("path", "content", "limit", "deep", "flags", "none"), rng.randrange(5)):
        made[key] = {
            "path": rng.choice(_STRINGS),
            "content": rng.choice(_STRINGS),
            "limit": rng.choice((0, -1, 12.5, 1e20, 10**12)),
            "deep": {"a": [{"b": rng.choice(_STRINGS)}, [], {}], "c": None},
            "flags": [True, False, None, "x"],
            "none": None,
        }[key]
    return made


def _calls(rng: random.Random, most: int = 3) -> list[Call]:
    return [(rng.choice(_TOOLS), _arguments(rng)) for _ in range(rng.randrange(1, most + 1))]


def _dumps(rng: random.Random, value: Any) -> str:
    return json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=rng.choice((None, None, 2)))


def _envelope(rng: random.Random, call: Call) -> str:
    name, arguments = call
    name = name.replace(".", "_") if rng.random() < 0.3 else name
    key = rng.choice(("arguments", "arguments", "parameters"))
    made: dict[str, Any] = {"name": name, key: arguments}
    if rng.random() < 0.2:
        made = {key: arguments, "name": name}
    if rng.random() < 0.2:
        made = {
            "id": "c1",
            "type": "function",
            "function": {"name": name, key: json.dumps(arguments)},
        }
    return _dumps(rng, made)


def hermes(rng: random.Random) -> tuple[str, list[Call]]:
    calls = _calls(rng)
    blank = rng.choice(("", "\n"))
    written = [f"<tool_call>{blank}{_envelope(rng, call)}{blank}</tool_call>" for call in calls]
    return rng.choice(("", "\n")).join(written) + rng.choice(("", "\n", "<|im_end|>")), calls


def qwen_coder(rng: random.Random) -> tuple[str, list[Call]]:
    calls: list[Call] = []
    written = ""
    for name, arguments in _calls(rng):
        texts = {
            key: value.replace("</parameter>", "").strip("\n")
            for key, value in arguments.items()
            if key in ("path", "content")
        }
        others = {key: value for key, value in arguments.items() if key not in texts}
        calls.append((name, {**texts, **others}))
        parameters = "".join(
            f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in texts.items()
        ) + "".join(
            f"<parameter={key}>\n{json.dumps(value)}\n</parameter>\n"
            for key, value in others.items()
        )
        written += f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>\n"
    return written, calls


def llama_function(rng: random.Random) -> tuple[str, list[Call]]:
    calls = _calls(rng)
    return "\n".join(
        f"<function={name}>{_dumps(rng, arguments)}</function>" for name, arguments in calls
    ), calls


def fenced(rng: random.Random) -> tuple[str, list[Call]]:
    calls = _calls(rng)
    info = rng.choice(("json", "tool_call", "", "JSON"))
    if rng.random() < 0.5:
        text = "\n".join(f"```{info}\n{_envelope(rng, call)}\n```" for call in calls)
        return text + rng.choice(("", "\n")), calls
    listed = f"[{', '.join(_envelope(rng, call) for call in calls)}]"
    return f"```{info}\n{listed}\n```", calls


def python_tag(rng: random.Random) -> tuple[str, list[Call]]:
    calls = _calls(rng)
    between = rng.choice(("; ", "\n", ";"))
    end = rng.choice(("", "<|eom_id|>", "<|eot_id|>"))
    return "<|python_tag|>" + between.join(_envelope(rng, call) for call in calls) + end, calls


def mistral(rng: random.Random) -> tuple[str, list[Call]]:
    calls = _calls(rng)
    listed = f"[{', '.join(_envelope(rng, call) for call in calls)}]"
    return f"[TOOL_CALLS]{rng.choice(('', ' '))}{listed}{rng.choice(('', '</s>'))}", calls


def mistral_args(rng: random.Random) -> tuple[str, list[Call]]:
    calls = _calls(rng)
    call_id = rng.choice(("", "[CALL_ID]abc123DEF"))
    return "".join(
        f"[TOOL_CALLS]{name}{call_id}[ARGS]{_dumps(rng, arguments)}" for name, arguments in calls
    ), calls


def react(rng: random.Random) -> tuple[str, list[Call]]:
    name, arguments = _calls(rng)[0]
    written = _dumps(rng, arguments)
    if rng.random() < 0.3:
        written = f"\n```json\n{written}\n```"
    end = rng.choice(("", "\n", "\nObservation:", "\nObservation: \n"))
    thought = rng.choice(("", "Thought: I need the file.\n"))
    return f"{thought}Action: {name}\nAction Input: {written}{end}", [(name, arguments)]


def bare(rng: random.Random) -> tuple[str, list[Call]]:
    calls = _calls(rng, 2)
    return rng.choice(("; ", "\n")).join(_envelope(rng, call) for call in calls), calls


def harmony(rng: random.Random) -> tuple[str, list[Call]]:
    name, arguments = _calls(rng)[0]
    thought = rng.choice(
        ("", "<|channel|>analysis<|message|>We need the file.<|end|><|start|>assistant")
    )
    return (
        f"{thought}<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
        f"{_dumps(rng, arguments)}<|call|>"
    ), [(name, arguments)]


Make = Callable[[random.Random], tuple[str, list[Call]]]
# Those that look like ordinary text count only in mode text.
_UNAMBIGUOUS: tuple[Make, ...] = (
    hermes,
    qwen_coder,
    llama_function,
    python_tag,
    mistral,
    mistral_args,
)
_ONLY_TEXT: tuple[Make, ...] = (fenced, react, bare)


def _sample(make: Make, number: int) -> tuple[str, list[Call]]:
    rng = random.Random(f"{make.__name__}-{number}")
    text, calls = make(rng)
    if make is harmony:
        return text, calls
    if make is bare:
        return rng.choice(_THOUGHTS) + text, calls
    return rng.choice(_THOUGHTS) + rng.choice(_BEFORE) + text, calls


def _read(
    pieces: list[str], wanted: Wanted = "every", stop: str = "end", *, own: bool = False
) -> tuple[Read, str]:
    """`own`: the model was not shown the names of these tools, so it quotes nothing."""
    shown: list[str] = []
    scanner = Scanner(
        lambda channel, piece: shown.append(piece) if channel == "text" else None,
        _OFFERED,
        wanted,
        shown=lambda tool: not own,
    )
    for piece in pieces:
        scanner.hear("text", piece)
    return scanner.end(stop), "".join(shown)


def _made(calls: tuple[TextCall, ...]) -> list[Call]:
    assert not any(call.malformed for call in calls), calls
    return [(call.name, call.arguments) for call in calls]


@pytest.mark.parametrize("make", [*_UNAMBIGUOUS, *_ONLY_TEXT, harmony])
def test_every_sample_gives_its_calls_wherever_it_is_cut(make: Make) -> None:
    for number in range(200):
        text, calls = _sample(make, number)
        whole, shown = _read([text])
        assert _made(whole.calls) == calls, text
        assert shown == whole.text
        assert not any(
            mark in shown for mark in ("tool_call", "TOOL_CALLS", "python_tag", '"name"')
        )
        # All of them in single characters; some in two pieces at every place, the others at every
        # fifth.
        step = 1 if number < 25 else 5
        for at in range(1 + number % step, len(text), step):
            cut, _ = _read([text[:at], text[at:]])
            assert cut == whole, (at, text)
        assert _read(list(text))[0] == whole


def _streamed(text: str) -> bytes:
    """A server's stream that says this in a few pieces, its letters as they are."""
    size = -(-len(text) // 4)
    deltas: list[dict[str, Any]] = [
        {"delta": {"content": text[at : at + size]}} for at in range(0, len(text), size)
    ]
    deltas.append({"delta": {}, "finish_reason": "stop"})
    lines = [json.dumps({"choices": [each]}, ensure_ascii=False) for each in deltas]
    return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()


@pytest.mark.parametrize("make", [*_UNAMBIGUOUS, *_ONLY_TEXT, harmony])
def test_a_server_may_cut_its_stream_at_every_byte(make: Make) -> None:
    """Also in the middle of a letter, of an event and of a line's end."""
    samples = (_sample(make, number) for number in range(200))
    # Short ones, with letters of several bytes.
    chosen = [each for each in samples if len(each[0]) < 400 and not each[0].isascii()][:2]
    assert chosen
    for text, calls in chosen:
        body = _streamed(text)
        whole = None
        for at in range(len(body)):
            scanner = Scanner(lambda channel, piece: None, _OFFERED, "every")
            reader = ResponseReader(
                ChatParser(ToolNames(()), scanner.hear, ENDPOINT, "openai-chat@127.0.0.1"), ENDPOINT
            )
            for piece in (body[:at], body[at:]):
                reader.feed(piece)
            found = scanner.end(reader.end().stop)
            whole = whole or found
            assert found == whole, (at, text)
        assert whole is not None
        assert _made(whole.calls) == calls


@pytest.mark.parametrize("make", [*_UNAMBIGUOUS, harmony])
def test_a_native_model_that_leaks_a_call_is_understood(make: Make) -> None:
    for number in range(50):
        text, calls = _sample(make, number)
        assert _made(_read(list(text), "unambiguous")[0].calls) == calls


@pytest.mark.parametrize("make", _ONLY_TEXT)
def test_forms_that_look_like_text_are_text_to_a_native_model(make: Make) -> None:
    for number in range(50):
        text, _ = _sample(make, number)
        found, shown = _read([text], "unambiguous")
        assert not found.calls
        assert shown == found.text


@pytest.mark.parametrize("make", [*_UNAMBIGUOUS, *_ONLY_TEXT, harmony])
def test_a_call_that_breaks_off_is_never_done(make: Make) -> None:
    """At every character of a reply that ends there: nothing, or the calls that were complete. In
    long ones at every fifth, beginning elsewhere in each.
    """
    for number in range(200):
        text, calls = _sample(make, number)
        short = len(text) < 160
        for at in range(0 if short else number % 5, len(text), 1 if short else 5):
            found, _ = _read([text[:at]], stop="length")
            done = [(call.name, call.arguments) for call in found.calls if not call.malformed]
            assert done == calls[: len(done)], (at, text)


def _quoted(rng: random.Random, make: Make) -> str:
    text, _ = make(rng)
    lines = text.splitlines()
    tail = rng.choice(("That is what the file says.", "Do you want me to run it?", "."))
    match rng.randrange(6):
        case 0:
            return f"The file holds:\n````text\n{text}\n````\n{tail}"
        case 1:
            return f"It says:\n~~~~xml\nfirst\n{text}\n~~~~"
        case 2:
            return "It says:\n" + "\n".join(f"> {line}" for line in lines) + f"\n\n{tail}"
        case 3:
            return f"The format is {' '.join(lines)} as you see."
        case 4:
            return f"<think>{text.replace('</think>', '')}</think>\n{tail}"
        case _:
            return "A list:\n" + "\n".join(f"    {line}" for line in lines) + f"\n{tail}"


@pytest.mark.parametrize("wanted", ["every", "unambiguous"])
@pytest.mark.parametrize("make", [*_UNAMBIGUOUS, *_ONLY_TEXT, harmony])
def test_a_quoted_call_is_never_done(make: Make, wanted: Wanted) -> None:
    for number in range(200):
        rng = random.Random(f"quoted-{make.__name__}-{number}")
        text = _quoted(rng, make)
        found, shown = _read([text], wanted)
        assert not found.calls, text
        assert found.text == shown
        for at in range(1, len(text), 7):
            assert _read([text[:at], text[at:]], wanted)[0] == found, (at, text)


@pytest.mark.parametrize("make", [*_UNAMBIGUOUS, *_ONLY_TEXT])
def test_a_call_of_a_shown_tool_with_text_behind_it_is_not_done(make: Make) -> None:
    for number in range(100):
        rng = random.Random(f"behind-{make.__name__}-{number}")
        text = f"{make(rng)[0]}\nThat is what the page says."
        found, shown = _read([text])
        assert not found.calls, text
        assert found.text == shown
        assert _read(list(text))[0] == found


@pytest.mark.parametrize("make", [*_UNAMBIGUOUS, *_ONLY_TEXT])
def test_text_behind_the_models_own_call_is_dropped(make: Make) -> None:
    for number in range(100):
        text, calls = _sample(make, number)
        told = f"{text}\n<tool_response>made up</tool_response>\n{text}"
        found, shown = _read([told], own=True)
        assert [(call.name, call.arguments) for call in found.calls] == calls, told
        assert "made up" not in shown
        assert found.text == shown
        for at in range(1, len(told), 11):
            assert _read([told[:at], told[at:]], own=True)[0] == found, (at, told)


def test_a_quote_between_two_calls_leaves_neither() -> None:
    call = '<tool_call>{"name": "fs.read", "arguments": {"path": "a"}}</tool_call>'
    found, shown = _read([f"{call}\nand then\n{call}"])
    assert not found.calls
    assert found.stray
    assert shown.count("fs.read") == 2


def test_only_offered_tools_can_be_called() -> None:
    text = '<tool_call>{"name": "vault.read", "arguments": {}}</tool_call>'
    told, shown = _read([text])
    assert [(call.name, bool(call.malformed)) for call in told.calls] == [("vault.read", True)]
    assert shown == ""
    found, shown = _read([text], "unambiguous")
    assert not found.calls
    assert shown == text


def test_an_ordinary_fence_does_not_hide_the_call_behind_it() -> None:
    call = '<tool_call>{"name": "fs.read", "arguments": {"path": "a"}}</tool_call>'
    for fence in ('```json\n{"a": 1}\n```', "```\nls -l\n```", '```json\n{"a": // no\n```'):
        text = f"Like this:\n{fence}\nNow I look.\n{call}"
        for pieces in ([text], list(text)):
            found, shown = _read(pieces)
            assert _made(found.calls) == [("fs.read", {"path": "a"})]
            assert fence in shown


def test_an_answer_in_json_is_an_answer() -> None:
    for text in ('{"answer": 42, "why": "it is"}', '{"name": "Ada", "born": 1815}', "{}", "{"):
        found, shown = _read(list(text))
        assert not found.calls
        assert shown == text


@pytest.mark.parametrize(
    "inner",
    [
        "{'name': 'fs.read', 'arguments': {'path': 'a'}}",
        '{"name": "fs.read", "arguments": {"path": "a",},}',
        '{"name": "fs.read", "arguments": {"path": "a"}',
        '{name: "fs.read", arguments: {path: "a"}}',
        '{"name": "fs.read", /* the file */ "arguments": {"path": "a"}}',
        '{"name": "fs.read", "arguments": {"path": "a"}}}',
    ],
)
def test_nearly_valid_json_is_repaired_and_says_so(inner: str) -> None:
    (call,) = _read([f"<tool_call>{inner}</tool_call>"])[0].calls
    assert (call.name, call.arguments, call.malformed) == ("fs.read", {"path": "a"}, "")
    assert call.repaired


def test_what_cannot_be_read_is_told_and_not_shown() -> None:
    found, shown = _read(['<tool_call>{"name": "fs.read", "arguments": {"path" "a"}}</tool_call>'])
    (call,) = found.calls
    assert call.name == "fs.read"
    assert "not valid JSON" in call.malformed
    assert shown == ""


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>why</think>because", "why", "because"),
        ("  <thinking>\nwhy</thinking>\n\nbecause", "why", "because"),
        ("<reasoning>a</reasoning><think>b</think>c", "ab", "c"),
        ("[THINK]why[/THINK]because", "why", "because"),
        ("<think>never closed", "never closed", ""),
        ("because <think>no</think>", "", "because <think>no</think>"),
        ("<thin ice", "", "<thin ice"),
        (
            "<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>final"
            "<|message|>because<|return|>",
            "why",
            "because",
        ),
        ("<|channel|>final<|message|>because", "", "because"),
    ],
)
def test_thoughts_at_the_beginning_are_reasoning(text: str, reasoning: str, answer: str) -> None:
    whole = _read([text])[0]
    assert (whole.reasoning, whole.text) == (reasoning, answer)
    for at in range(1, len(text)):
        assert _read([text[:at], text[at:]])[0] == whole
    assert _read(list(text))[0] == whole


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "{",
        "[TOOL_CALLS",
        "<tool_call>",
        "\n<tool_call>",
        "[TOOL_CALLS]",
        "\n```",
        "\n```json\n{",
        "\nAction: fs.read\n",
        "\n>",
        "<tool_call>{",
        "<function=",
        "\n",
        "<think>",
        '{"name": ',
        "<parameter=a>",
        "'",
        "#",
        "/*",
    ],
)
def test_hostile_text_costs_time_in_proportion(unit: str) -> None:
    """Ten times the text costs no more than about ten times the time, however it is cut."""

    def cost(size: int) -> float:
        text = unit * (size // len(unit))
        pieces = [text[at : at + 4096] for at in range(0, len(text), 4096)]
        best = 1e9
        for _ in range(3):
            began = time.process_time()
            _read(pieces)
            _read([f'<tool_call>{{"name": "fs.read", "arguments": {text}'])
            best = min(best, time.process_time() - began)
        return best

    small, large = cost(20_000), cost(400_000)
    assert large < 20 * 6 * max(small, 0.004)
