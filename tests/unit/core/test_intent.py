"""What a user's words ask for, and which tools they may mean."""

import pytest

from palyra.core import intent


def asked(said: str, tool: str, *arguments: str) -> int:
    return intent.count(intent.fitting(said, tool, (), arguments), addressed=False)


@pytest.mark.parametrize(
    ("said", "tool", "arguments"),
    [
        ("My card is gone, freeze it", "mcp:bank/freeze_card", ()),
        ("Stop the standing order for the gym", "mcp:bank/standing_order_stop", ()),
        ("If it looks fine, approve and merge it", "mcp:git/approve_merge_request", ()),
        ("If it looks fine, approve and merge it", "mcp:git/merge", ()),
        ("Leave a note on request 41", "mcp:git/comment_on_merge_request", ("note",)),
        ("Tell the sales chat that I am back", "mcp:teams/postMessage", ()),
        ("Move the Fjord deal to won", "mcp:crm/set_stage", ("deal_id", "stage")),
        ("File a bug about it", "mcp:git/new_issue", ()),
        ("Send it to Bob", "mcp:gmail/GMAIL_SEND_EMAIL", ()),
    ],
)
def test_a_tool_is_meant_by_its_own_words(said: str, tool: str, arguments: tuple[str, ...]) -> None:
    assert asked(said, tool, *arguments) == 1


@pytest.mark.parametrize(
    ("said", "tool", "arguments"),
    [
        ("Draft a reply saying that we come", "mcp:gmail/GMAIL_SEND_EMAIL", ()),
        ("Review merge request 41", "mcp:git/merge", ()),
        ("File a bug about the build", "mcp:git/set_variable", ("key", "value")),
        ("Save that as a new document", "mcp:crm/set_stage", ("deal_id", "stage")),
        ("Give the keyboard four stars", "mcp:shop/add_to_cart", ("sku",)),
        ("Who came to the door? Put a line about it on my list", "mcp:home/unlock_door", ("door",)),
        ("What does freeze mean?", "mcp:bank/freeze_card", ()),
        ("The pipes may freeze", "mcp:bank/freeze_card", ()),
        ("File it under taxes", "mcp:drive/delete_file", ()),
    ],
)
def test_other_words_ask_for_nothing(said: str, tool: str, arguments: tuple[str, ...]) -> None:
    assert asked(said, tool, *arguments) == 0


def test_an_order_is_used_up_by_whichever_tool_it_named() -> None:
    meant = intent.fitting("Leave a note on it", "mcp:git/comment", (), ("note",))
    assert meant
    assert intent.uses_up(meant, "mcp:git/comment", "mcp:git/comment")
