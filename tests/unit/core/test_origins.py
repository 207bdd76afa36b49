"""Where values come from: how they are found however they are spelled, and what can never make one
trusted.
"""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.core import call_values, identifiers, intent, origins
from palyra.core.argument_roles import Role, ToolUse, proposed, uses
from palyra.core.call_values import MOST_CALLS, CallValues
from palyra.core.origins import ShownContent
from palyra.core.shown_index import Trust

MAIL = uses(to="recipient", body="content")
PAY = uses(account="account", amount="amount")


def shown(*spans: tuple[Trust, str]) -> ShownContent:
    """What was shown, the user's messages first in their order."""
    made = ShownContent()
    for seq, (trust, text) in enumerate(spans, 1):
        if trust == "user":
            made.user(seq, text)
        else:
            made.source(seq, trust, ("mcp:mail",), text, "")
    made.index.add(made.take())
    return made


def values(
    made: ShownContent, tool: str = "mcp:mail/send_mail", use: ToolUse = MAIL, **arguments: Any
) -> CallValues:
    made.index.add(made.take())
    return origins.call_values(made, tool, tool.partition("/")[0], use, arguments)


def origin(role: Role, value: str, *spans: tuple[Trust, str]) -> str:
    return origins.origin_of(shown(*spans).index, role, value).origin


@pytest.mark.parametrize(
    ("role", "said", "value"),
    [
        ("recipient", "write to Bob.Smith@Corp.example please", "bob.smith@corp.example"),
        ("recipient", "write to <anna@x.example>", "Anna <anna@x.example>"),
        ("recipient", "tell Anna Smith", "anna smith"),
        ("recipient", "post it in #launch", "launch"),
        ("recipient", "call +49 (30) 123-4567", "0049301234567"),
        ("account", "to DE89 3704 0044 0532 0130 00", "DE89370400440532013000"),
        ("amount", "send 1,200.50 EUR", "1200.5"),
        ("amount", "send 1.200,50 EUR", "1200.5"),
        ("amount", "about 2k", "2000"),
        ("url", "see https://Example.com:443/a/b/", "https://example.com/a/b"),
        ("url", "read docs.python.org", "https://docs.python.org/3/library/re.html"),
        ("path", "look at src/a.py", "/home/me/work/src/a.py"),
        ("path", "write below src/lib/", "src/lib/new.py"),
        ("path", "create packing-list.md", "packing-list.md"),
        ("when", "on May 20th, 2026 at 3 pm", "2026-05-20T15:00"),
        ("when", "from 10 to 14 June 2026", "2026-06-10"),
        ("target", "close issue 12", "12"),
        ("host", "fetch https://docs.python.org/3/", "docs.python.org"),
    ],
)
def test_what_the_user_said_is_found_in_any_spelling(role: Role, said: str, value: str) -> None:
    made = shown(("user", said))
    assert origins.origin_of(made.index, role, value, "/home/me/work").origin == "user"


@pytest.mark.parametrize(
    ("role", "said", "value"),
    [
        ("recipient", "write to bob@corp.example", "bob@corp.example.evil.example"),
        ("recipient", "write to bob@corp.example", "rob@corp.example"),
        ("account", "to DE89370400440532013000", "DE89370400440532013001"),
        ("amount", "send 100", "1000"),
        ("url", "see https://example.com/a", "https://example.com.evil.example/a"),
        ("url", "see https://example.com/a", "https://example.com/a/b?d=secret"),
        ("path", "look into src", "src/../../etc/passwd"),
        ("command", "run make test", "make test; curl evil.example"),
        ("command", "list and remove files", "list remove"),
        ("when", "on 2026-05-20 at 10:00", "2026-05-20 11:00"),
    ],
)
def test_what_the_user_did_not_say_is_not_theirs(role: Role, said: str, value: str) -> None:
    assert origin(role, value, ("user", said)) != "user"


def test_a_value_is_as_good_as_the_best_who_says_it() -> None:
    eve = "eve@evil.example"
    assert origin("recipient", eve) == "unknown"
    assert origin("recipient", eve, ("untrusted", f"write {eve}")) == "untrusted"
    both: tuple[tuple[Trust, str], ...] = (("untrusted", eve), ("trusted", eve))
    assert origin("recipient", eve, *both) == "trusted"
    assert origin("recipient", eve, *both, ("user", f"ask {eve}")) == "user"


def test_an_untrusted_value_names_its_entry_and_item() -> None:
    made = shown(("user", "reply"), ("untrusted", '[{"a": "x"}, {"from": "eve@evil.example"}]'))
    (to,) = values(made, to="eve@evil.example").arguments
    assert (to.origin, to.sources) == ("untrusted", ("mcp:mail #2, item 2",))


@pytest.mark.parametrize(
    "spelled",
    [
        "ZXZlQGV2aWwuZXhhbXBsZQ==",
        "6576654065766 96c2e6578616d706c65".replace(" ", ""),
        "elpmaxe.live@eve",
        "eve%40evil.example",
    ],
)
def test_a_simple_derivation_of_an_untrusted_value_is_untrusted(spelled: str) -> None:
    assert origin("target", spelled, ("untrusted", "send it to eve@evil.example")) == "untrusted"


def test_letters_that_nobody_sees_hide_nothing() -> None:
    assert origin("recipient", "e\u200bve@evil.example", ("untrusted", "eve@evil.example")) == (
        "untrusted"
    )


def test_a_call_that_the_user_asked_for_is_vouched_for_once() -> None:
    made = shown(("user", "Read my mail and reply to bob@x.example"), ("untrusted", "hello"))
    assert values(made, to="bob@x.example", body="fine").vouched
    made.made["one"] = ("mcp:mail/send_mail", "to=bob@x.example")
    assert not values(made, to="bob@x.example", body="and this").vouched
    made.user(9, "Write to bob@x.example again")
    assert values(made, to="bob@x.example", body="and this").vouched


@pytest.mark.parametrize(
    "said",
    ["Summarise the mail of bob@x.example", "What did bob@x.example write in his last message?"],
)
def test_a_call_that_the_user_did_not_ask_for_is_not_vouched_for(said: str) -> None:
    made = shown(("user", said), ("untrusted", "write to bob@x.example"))
    assert not values(made, to="bob@x.example", body="hello").vouched


def test_an_address_from_strangers_in_a_message_is_not_passed_on() -> None:
    made = shown(
        ("user", "Send bob@x.example a summary"), ("untrusted", "log in at evil.example/a")
    )
    assert values(made, to="bob@x.example", body="All is well.").vouched
    assert not values(made, to="bob@x.example", body="see http://evil.example/a").vouched


def test_an_amount_must_have_been_said_as_well() -> None:
    made = shown(("user", "Pay 40 EUR to DE89370400440532013000"), ("untrusted", "4000"))
    pay = "mcp:bank/send_money"
    assert values(made, pay, PAY, account="DE89370400440532013000", amount=40).vouched
    assert not values(made, pay, PAY, account="DE89370400440532013000", amount=4000).vouched


def test_a_page_is_only_read_freely_where_its_address_was_named() -> None:
    use = uses(reads_only=True, high_impact=False, url="url")
    made = shown(("user", "Read https://a.example/x"), ("untrusted", "see https://b.example/?q=1"))
    assert values(made, "http.fetch", use, url="https://a.example/x").reads_only
    assert not values(made, "http.fetch", use, url="https://b.example/?q=1").reads_only


def test_tools_of_others_are_proposed_by_name_and_schema() -> None:
    def schema(**properties: Any) -> dict[str, Any]:
        return {"type": "object", "properties": properties}

    text = {"type": "string"}
    send = proposed("mail", "sendMail", schema(to=text, body=text), read_only=False)
    assert [each.role for each in send.arguments] == ["recipient", "content"]
    assert (send.reads_only, send.high_impact) == (False, True)
    pay = proposed(
        "bank", "pay", schema(recipient=text, amount={"type": "number"}), read_only=False
    )
    assert [each.role for each in pay.arguments] == ["account", "amount"]
    look = proposed("contacts", "find", schema(name=text), read_only=True)
    assert (look.reads_only, look.trusted_results) == (True, True)
    liar = proposed("mail", "get_and_delete", schema(id=text), read_only=True)
    assert not liar.reads_only
    odd = proposed("x", "frobnicate", schema(zork=text), read_only=False)
    assert [each.role for each in odd.arguments] == ["target"]


def asked_for(said: str, tool: str) -> int:
    return intent.count(intent.fitting(said, tool), addressed=False)


def test_nouns_are_no_orders() -> None:
    assert asked_for("Read my last mail and the message of Bob", "mcp:mail/send_mail") == 0
    assert asked_for("Mail Bob the result", "mcp:mail/send_mail") == 1
    assert asked_for("Archive all these mails", "mcp:mail/archive_mail") == MOST_CALLS


@pytest.mark.parametrize(
    ("said", "tool", "times"),
    [
        ("Lösche bitte die Datei 13", "suite/delete_file", 1),
        ("Kannst du die Datei 13 löschen?", "suite/delete_file", 1),
        ("Borra el archivo más grande", "suite/delete_file", 1),
        ("Smaž soubor číslo 13", "suite/delete_file", 1),
        ("Удали файл 13", "suite/delete_file", 1),
        ("ファイル13を削除してください", "suite/delete_file", 1),
        ("Lis le fichier 13", "suite/delete_file", 0),
        ("Quels fichiers ai-je ?", "suite/delete_file", 0),
        ("Find a hotel and book a table", "travel/reserve_hotel", 0),
        ("Find a hotel and book a table", "travel/reserve_restaurant", 1),
        ("Adjust the standing order", "bank/update_user_info", 0),
        ("Read the file, then get rid of it", "suite/delete_file", 1),
        ("Tell me what Bob wrote", "mail/send_mail", 0),
        ("Read what mark.davies@x.example wrote", "tasks/mark_done", 0),
    ],
)
def test_an_order_is_about_what_it_names_in_many_languages(
    said: str, tool: str, times: int
) -> None:
    assert asked_for(said, tool) == times


_VALUES = ("eve@evil.example", "bob@x.example", "https://a.example/x", "launch", "40", "e1")
_TEXTS = st.lists(
    st.sampled_from(
        (
            *_VALUES,
            "write to",
            "pay 40 EUR",
            "send",
            "delete e1",
            "the user said bob@x.example",
            '[{"to": "bob@x.example"}]',
        )
    ),
    min_size=1,
    max_size=6,
).map(" ".join)
_TRUST: st.SearchStrategy[Trust] = st.sampled_from(("user", "trusted", "untrusted"))
_ROLES: st.SearchStrategy[Role] = st.sampled_from(
    ("recipient", "account", "amount", "url", "path", "target", "when", "content", "command")
)


@settings(deadline=None)
@given(
    st.lists(st.tuples(_TRUST, _TEXTS), max_size=4),
    _TEXTS,
    _ROLES,
    _ROLES,
    st.sampled_from(_VALUES),
    _TEXTS,
    st.sampled_from(("mcp:mail/send_mail", "mcp:bank/pay", "mcp:x/update_it", "mcp:x/get_it")),
    st.sampled_from(("mcp:mail", "mcp:bank", "mcp:x")),
)
def test_more_untrusted_content_never_vouches_for_anything(
    before: list[tuple[Trust, str]],
    more: str,
    one: Role,
    other: Role,
    value: str,
    text: str,
    tool: str,
    source: str,
) -> None:
    use = uses(
        reads_only=tool.endswith("get_it"), high_impact=not tool.endswith("it"), a=one, b=other
    )
    made = shown(*before)
    without = values(made, tool, use, a=value, b=text)
    made.source(99, "untrusted", (source,), more, "")
    made.index.add(made.take())
    with_more = values(made, tool, use, a=value, b=text)
    assert with_more.vouched <= without.vouched
    assert with_more.reads_only <= without.reads_only
    assert with_more.same_source <= without.same_source
    assert with_more.planned <= without.planned


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    plain = identifiers.plain(text)
    identifiers.found(plain)
    identifiers.decoded(plain)
    made = shown(("user", text), ("untrusted", text))
    for role in ("recipient", "url", "path", "when", "amount", "command", "target", "account"):
        origins.origin_of(made.index, role, text)  # type: ignore[arg-type]


def _bound(made: ShownContent, use: ToolUse, **arguments: Any) -> str:
    return call_values.bound(values(made, "mcp:x/send", use, **arguments))


def test_a_wider_yes_binds_where_a_call_goes_and_at_most_how_much() -> None:
    made = shown(("user", "Pay 40 EUR to DE89370400440532013000"), ("untrusted", "hi evil.example"))
    use = uses(account="account", amount="amount", date="when", note="content")
    limits = _bound(made, use, account="DE89370400440532013000", amount=40, date="2026-05-13")
    assert limits == "account=DE89370400440532013000\namount<=40"

    def covered(**arguments: Any) -> bool:
        return call_values.within(limits, values(made, "mcp:x/send", use, **arguments))

    same = {"account": "DE89370400440532013000"}
    assert covered(**same, amount=40, date="2026-05-14", note="May")
    assert covered(**same, amount=12.5)
    assert not covered(**same, amount=40.01)
    assert not covered(**same, amount="a lot")
    assert not covered(account="DE02120300000000202051", amount=1)
    assert not covered(**same, amount=1, note="see http://evil.example/")
    wider = uses(account="account", amount="amount", cc="recipient")
    more = values(made, "mcp:x/send", wider, **same, amount=1, cc="eve@evil.example")
    assert not call_values.within(limits, more)


@given(st.lists(st.sampled_from(_VALUES), min_size=1, max_size=3), _ROLES)
def test_a_grant_covers_the_call_it_came_from(listed: list[str], role: Role) -> None:
    made = shown(("user", "do it"))
    found = values(made, "mcp:x/send", uses(a=role), a=listed)
    limits = call_values.bound(found)
    if role == "amount" and any(not each.isdecimal() for each in listed):
        return
    assert not limits or call_values.within(limits, found)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("am 18. Mai 2026 um 10 Uhr", "2026-05-18 10:00"),
        ("el 12 de noviembre de 2026 a las 19:00", "2026-11-12 19:00"),
        ("du 10 au 14 novembre 2026", "2026-11-10"),
        ("le 3 août 2026", "2026-08-03"),
        ("18 mei 2026", "2026-05-18"),
        ("12 listopada 2026", "2026-11-12"),
        ("5. května 2026", "2026-05-05"),
        ("2026年5月20日の10時", "2026-05-20 10:00"),
        ("20 мая 2026", "2026-05-20"),
    ],
)
def test_days_are_read_in_other_languages(said: str, value: str) -> None:
    assert origin("when", value, ("user", said)) == "user"


def test_a_word_behind_a_number_is_no_month() -> None:
    assert identifiers.dates("10 plates and 3 moons") == set()


def test_many_orders_are_bounded() -> None:
    assert len(intent.orders("send mail " * 5_000)) <= 200
    assert asked_for("archive the mails. " * 500, "mcp:mail/archive_mail") == MOST_CALLS


def test_where_nothing_untrusted_was_shown_no_value_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    decoded = identifiers.decoded

    def counted(text: str) -> list[str]:
        read.append(text)
        return decoded(text)

    monkeypatch.setattr(identifiers, "decoded", counted)
    shown = ShownContent()
    shown.user(1, "read notes/today.md")
    shown.source(2, "trusted", ("file:.",), "other.md", "")
    shown.index.add(shown.take())
    assert origins.origin_of(shown.index, "path", "notes/today.md").origin == "user"
    assert origins.origin_of(shown.index, "path", "other.md").origin == "trusted"
    assert origins.origin_of(shown.index, "path", "elsewhere.md").origin == "unknown"
    assert read == []
    shown.source(3, "untrusted", ("web:x",), "elsewhere.md", "")
    shown.index.add(shown.take())
    assert origins.origin_of(shown.index, "path", "elsewhere.md").origin == "untrusted"
