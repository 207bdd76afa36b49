"""Any text at all: how it is cut changes nothing, and what is no call and no thought is shown as it
was written.
"""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from palyra.models.text_tools.calls import Offered
from palyra.models.text_tools.lines import Wanted
from palyra.models.text_tools.scan import Read, Scanner

_OFFERED = Offered({"fs.read": "fs.read"}, {})
_FRAGMENTS = st.sampled_from(
    [
        "\n",
        "\n\n",
        " ",
        "a",
        "text ",
        "<",
        "<tool_call>",
        "</tool_call>",
        "<tool_",
        '{"name": "fs.read", "arguments": {"path": "x"}}',
        '{"name": "fs.read", "parameters": {}}',
        '{"name": "other", "arguments": {}}',
        "{'name': 'fs.read', 'arguments': {}}",
        '{"a": 1}',
        '{"name": "fs.read", "arguments": {"path": "x"}',
        "{",
        "}",
        "[",
        "]",
        "[TOOL_CALLS]",
        "[TOOL_CALLS",
        "fs.read",
        "[ARGS]",
        "[CALL_ID]x1",
        "<|python_tag|>",
        ";",
        "<|eot_id|>",
        "<function=fs.read>",
        "<parameter=path>",
        "</parameter>",
        "</function>",
        "```",
        "```json\n",
        "~~~",
        "`",
        "> ",
        "Action: fs.read",
        "Action Input: ",
        "Observation:",
        "<think>",
        "</think>",
        "[THINK]",
        "[/THINK]",
        "<|channel|>",
        "analysis",
        "commentary to=functions.fs.read ",
        "final",
        "<|message|>",
        "<|end|>",
        "<|start|>assistant",
        "<|call|>",
        "<|return|>",
        "é🙂",
    ]
)
_TEXTS = st.lists(_FRAGMENTS, max_size=14).map("".join)
_MODES: st.SearchStrategy[Wanted] = st.sampled_from(["every", "unambiguous", "none"])


def _read(pieces: list[str], wanted: Wanted) -> tuple[Read, str]:
    shown: list[str] = []
    scanner = Scanner(
        lambda channel, piece: shown.append(piece) if channel == "text" else None,
        _OFFERED,
        wanted,
    )
    for piece in pieces:
        scanner.hear("text", piece)
    return scanner.end("end"), "".join(shown)


@settings(max_examples=1500, deadline=None)
@given(_TEXTS, _MODES)
@example('<tool_call>{"name": "fs.read", "arguments": {}}}</tool_call>', "every")
@example('```json\n{"name": "fs.read", "arguments": {}}\n```\n```', "every")
def test_any_text_means_the_same_however_it_is_cut(text: str, wanted: Wanted) -> None:
    whole, shown = _read([text], wanted)
    assert whole.text == shown
    assert _read(list(text), wanted)[0] == whole
    for at in range(1, len(text), 3):
        assert _read([text[:at], text[at:]], wanted)[0] == whole
    if not whole.changed:
        assert shown == text
    if wanted == "none":
        assert not whole.calls
