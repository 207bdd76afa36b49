"""What is proposed for a third-party tool, from its names and its schema."""

from typing import Any

import pytest

from palyra.core.argument_roles import ToolUse, proposed


def use(server: str, name: str, *, hint: bool = False, **kinds: str) -> ToolUse:
    schema: dict[str, Any] = {"properties": {key: {"type": kind} for key, kind in kinds.items()}}
    return proposed(server, name, schema, read_only=hint)


@pytest.mark.parametrize(
    ("server", "name", "hint", "reads"),
    [
        ("gmail", "GMAIL_FETCH_EMAILS", False, True),
        ("git", "list_merge_requests", True, True),
        ("drive", "open_document", True, True),
        ("drive", "open_document", False, False),
        ("git", "merge", True, False),
        ("mail", "get_and_delete_mail", False, False),
    ],
)
def test_the_first_verb_says_whether_a_tool_reads(
    server: str, name: str, hint: bool, reads: bool
) -> None:
    assert use(server, name, hint=hint).reads_only == reads


@pytest.mark.parametrize(
    ("server", "name", "high"),
    [
        ("gmail", "GMAIL_SEND_EMAIL", True),
        ("drive", "trash_document", True),
        ("gmail", "GMAIL_ADD_LABEL_TO_EMAIL", False),
        ("home", "unlock_door", True),
    ],
)
def test_a_server_s_name_in_front_hides_no_high_impact(server: str, name: str, high: bool) -> None:
    assert use(server, name).high_impact == high


def test_a_number_says_how_much_or_which() -> None:
    pays = use("ledger", "wire_transfer", to_iban="string", value="number", currency="string")
    merges = use("git", "merge", project="string", iid="integer")
    assert (pays.role("to_iban"), pays.role("value")) == ("account", "amount")
    assert merges.role("iid") == "target"
    assert use("shop", "list_items", page="integer").role("page") == "other"
