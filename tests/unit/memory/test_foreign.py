"""What other assistants keep, read as things to remember: who said it, when, and in which order."""

import json

import pytest

from palyra.core import labels
from palyra.core.errors import InvalidInput
from palyra.features.memory import foreign

MAY_3 = 1_777_766_400_000


def test_an_export_of_chatgpt_keeps_who_said_what_and_when() -> None:
    def message(role: str, text: str, at: float) -> dict[str, object]:
        return {
            "message": {
                "author": {"role": role},
                "create_time": at,
                "content": {"content_type": "text", "parts": [text]},
            }
        }

    export = [
        {
            "title": "Lisbon",
            "mapping": {
                "root": {"message": None},
                "b": message("assistant", "You should visit Belém.", MAY_3 / 1000 + 5),
                "a": message("user", "I moved to Lisbon.", MAY_3 / 1000),
                "s": message("system", "be kind", MAY_3 / 1000 - 1),
            },
        }
    ]
    data = json.dumps(export).encode()
    assert foreign.is_conversations(data)
    first, second = foreign.conversations(data)
    assert (first.text, first.source, first.place, first.valid_from_ms) == (
        "user: I moved to Lisbon.",
        "chatgpt/1 Lisbon",
        0,
        MAY_3,
    )
    assert (second.text, second.place) == ("assistant: You should visit Belém.", 1)
    assert not labels.commands(second.text, by_a_person=True)


def test_an_export_of_claude_keeps_who_said_what_and_when() -> None:
    export = [
        {
            "name": "Dogs",
            "chat_messages": [
                {"sender": "human", "text": "My dog is Rex.", "created_at": "2026-05-03T00:00:00Z"},
                {"sender": "assistant", "text": "x" * 5_000, "created_at": "not a time"},
            ],
        }
    ]
    found = foreign.conversations(json.dumps(export).encode())
    assert [(each.text[:16], each.place, each.valid_from_ms) for each in found] == [
        ("user: My dog is ", 0, MAY_3),
        ("assistant: xxxxx", 1, 0),
        ("assistant: xxxxx", 2, 0),
    ]


def test_a_list_in_markdown_has_the_days_that_stand_with_its_points() -> None:
    text = "# About me\n- I am left-handed\n\n## 2026-05-03\n* I live in Brno\n1. [2026-05-03] I sing\n"
    found = foreign.markdown(text, "/home/me/memory.md")
    assert [(each.text, each.source, each.valid_from_ms) for each in found] == [
        ("I am left-handed", "memory.md", 0),
        ("I live in Brno", "memory.md", MAY_3),
        ("I sing", "memory.md", MAY_3),
    ]


@pytest.mark.parametrize("data", [b"[1]", b'[{"a": 1}]', b"[", b"[[]]"])
def test_what_is_in_no_known_form_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput):
        foreign.conversations(data)


def test_a_file_without_a_list_is_refused() -> None:
    with pytest.raises(InvalidInput, match="has no list"):
        foreign.markdown("just prose", "notes.md")
