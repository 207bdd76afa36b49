"""Names that weak models write for tools and arguments, and replies that only speak of a call."""

import json
from typing import Any

import pytest

from palyra.core.messages import AssistantMessage, ModelCall, Text, ToolMessage, UserMessage
from palyra.models.text_tools import nearly
from palyra.models.text_tools.calls import Offered
from palyra.models.text_tools.described import describes
from palyra.models.text_tools.scan import Read, Scanner
from tests.model_reading import asks

PATH: dict[str, Any] = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
EDITS: dict[str, Any] = {
    "properties": {
        "diff": {"type": "string"},
        "edits": {
            "type": "array",
            "items": {
                "properties": {
                    "path": {"type": "string"},
                    "search": {"type": "string"},
                    "replace": {"type": "string"},
                },
                "required": ["path", "search", "replace"],
            },
        },
    }
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "fs.read": PATH,
    "fs.list": PATH,
    "fs.write": {
        "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
    "fs.patch": EDITS,
    "artifact.read": {"properties": {"id": {"type": "string"}}, "required": ["id"]},
    "shell.run": {"properties": {"command": {"type": "string"}}, "required": ["command"]},
    "memory.search": {"properties": {"query": {"type": "string"}}, "required": ["query"]},
}
NAMES = {name: name for name in SCHEMAS}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("fs_read", "fs.read"),
        ("FsRead", "fs.read"),
        ("FS.READ", "fs.read"),
        ("read_file", "fs.read"),
        ("listFiles", "fs.list"),
        ("list_directory", "fs.list"),
        ("create_file", "fs.write"),
        ("run_command", "shell.run"),
        ("bash", "shell.run"),
        ("execute", "shell.run"),
        # Two tools read, nothing deletes, and a word alone says too little.
        ("read", ""),
        ("delete_file", ""),
        ("search_web", ""),
        ("file", ""),
        ("", ""),
        ("🙂", ""),
    ],
)
def test_a_name_counts_if_it_can_mean_one_tool(written: str, meant: str) -> None:
    assert nearly.tool(written, SCHEMAS) == meant


@pytest.mark.parametrize(
    ("tool", "given", "right"),
    [
        ("fs.read", {"file": "a.txt"}, {"path": "a.txt"}),
        ("fs.read", {"Path": "a.txt"}, {"path": "a.txt"}),
        ("fs.write", {"filename": "a", "text": "b"}, {"path": "a", "content": "b"}),
        ("shell.run", {"cmd": "ls"}, {"command": "ls"}),
        (
            "fs.patch",
            {"path": "a", "search": "b", "replace": "c"},
            {"edits": [{"path": "a", "search": "b", "replace": "c"}]},
        ),
        # Right already, of another type, taken already, or unknown: left as it is.
        ("fs.read", {"path": "a.txt"}, {"path": "a.txt"}),
        ("fs.read", {"file": 7}, {"file": 7}),
        ("fs.read", {"path": "a", "file": "b"}, {"path": "a", "file": "b"}),
        ("fs.read", {"offset": 3, "path": "a"}, {"offset": 3, "path": "a"}),
        ("fs.read", {"colour": "red"}, {"colour": "red"}),
        ("fs.patch", {"path": "a", "search": "b"}, {"path": "a", "search": "b"}),
    ],
)
def test_arguments_get_the_names_of_the_schema_where_that_is_certain(
    tool: str, given: dict[str, Any], right: dict[str, Any]
) -> None:
    made, notes = nearly.arguments(given, SCHEMAS[tool])
    assert made == right
    assert bool(notes) == (made != given)


def _read(text: str, *, asked: bool = False) -> tuple[Read, list[tuple[str, str]]]:
    heard: list[tuple[str, str]] = []
    scanner = Scanner(
        lambda channel, piece: heard.append((channel, piece)),
        Offered(NAMES, SCHEMAS, asked=asked),
        "every",
        shown=lambda tool: False,
    )
    for letter in text:
        scanner.hear("text", letter)
    return scanner.end("end"), heard


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "read_file", "arguments": {"file": "a.txt"}}\n</tool_call>',
        '<function=read_file>{"file": "a.txt"}</function>',
        '[TOOL_CALLS]read_file[ARGS]{"file": "a.txt"}',
        '<|python_tag|>{"name": "read_file", "parameters": {"file": "a.txt"}}',
    ],
)
def test_what_was_put_right_in_a_call_is_told(text: str) -> None:
    read, _ = _read(text)
    (call,) = read.calls
    assert (call.name, call.arguments, call.malformed) == ("fs.read", {"path": "a.txt"}, "")
    assert call.repaired == ("read 'read_file' as fs.read", "read 'file' as 'path'")


def test_without_marks_only_the_tools_own_name_makes_a_call() -> None:
    plain = '{"name": "read_file", "arguments": {"path": "a.txt"}}'
    assert not _read(plain)[0].calls
    # Asked for an object, the model means a call.
    assert [call.name for call in _read(plain, asked=True)[0].calls] == ["fs.read"]


def test_a_tool_that_was_not_offered_is_told_with_those_that_were() -> None:
    read, _ = _read('<tool_call>\n{"name": "send_mail", "arguments": {}}\n</tool_call>')
    (call,) = read.calls
    assert call.malformed.startswith(
        "no tool named 'send_mail' was offered; the tools are: fs.read"
    )


@pytest.mark.parametrize("fence", ["", "```json\n"])
def test_an_answer_in_the_form_of_a_call_is_text(fence: str) -> None:
    said = json.dumps({"name": "answer", "arguments": {"text": "Two files.\nNo more."}})
    text = f"{fence}{said}" + ("\n```" if fence else "")
    read, heard = _read(text, asked=True)
    assert (read.text, read.calls) == ("Two files.\nNo more.", ())
    assert heard == [("text", "Two files.\nNo more.")]
    # Where no object was asked for, it is what it looks like.
    assert not _read(text)[0].calls
    assert _read(text)[0].text == text


def test_an_answer_beside_a_call_waits_for_its_result() -> None:
    both = '[{"name": "fs.list", "arguments": {"path": "."}}, {"name": "answer", "arguments": "x"}]'
    read, heard = _read(f"<tool_call>{both}</tool_call>", asked=True)
    assert [call.name for call in read.calls] == ["fs.list"]
    assert heard == [("call", "fs.list")]


ASKED = UserMessage((Text("Which files are here?"),))
CALLED = (
    AssistantMessage("", calls=(ModelCall("1", "fs.list", "{}"),)),
    ToolMessage("1", "fs.list", "a.txt"),
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("You can use the `fs.list` tool for that.", True),
        ("Use fs.list, with path set to `.`.", True),
        ("Run this:\n```bash\nls -l\n```", True),
        ("There are two files.", False),
        ("See `fs.listing` and myfs.list.", False),
        ("In Python:\n```python\nprint(1)\n```", False),
    ],
)
def test_a_reply_that_speaks_of_a_call_is_told_from_an_answer(text: str, says: bool) -> None:
    offered = Offered(NAMES, SCHEMAS)
    request = asks(*SCHEMAS, messages=(ASKED,))
    assert describes(text, request, offered) == says
    # Once it has called something, what it says of tools is part of the answer.
    after = asks(*SCHEMAS, messages=(ASKED, *CALLED))
    assert not describes(text, after, offered)
    again = asks(*SCHEMAS, messages=(ASKED, *CALLED, AssistantMessage("a.txt"), ASKED))
    assert describes(text, again, offered) == says
