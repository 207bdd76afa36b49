"""Who is who in chats: pairing in all its phases, identities, and a group in which nothing crosses
from one to another.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from palyra.core.errors import Conflict, Forbidden, NotFound
from palyra.core.ids import OWNER
from palyra.features.channels.pairing import (
    ALPHABET,
    LENGTH,
    LIFE_MS,
    LOCK_MS,
    looks_like_code,
    normal,
)
from palyra.features.channels.rows import people
from palyra.models.scripted import ScriptedCall, Turn
from palyra.store import approvals, sessions
from tests.chatting import Chat, chat
from tests.e2e.channels.test_messages import SAY, Echo, settled
from tests.inprocess import body, entries


def run(scene: Callable[[], Awaitable[None]], seconds: float = 60) -> None:
    asyncio.run(asyncio.wait_for(scene(), seconds))


async def code_of(talk: Chat, who: str) -> str:
    """Write as a stranger and read the code that comes back."""
    before = len(talk.posted(f"dm-{who}"))
    talk.direct(who, "hello, may I?")
    text = (await talk.answers(f"dm-{who}", before + 1))[-1]
    found = re.search(r"[0-9A-Z]{4}-[0-9A-Z]{4}", text)
    assert found, text
    return found[0]


def later(talk: Chat, ms: int) -> None:
    """Time passes on the wall."""
    before = talk.daemon.clock.now_ms
    talk.daemon.clock.now_ms = lambda: before() + ms  # type: ignore[method-assign]
    talk.daemon.db._clock = talk.daemon.clock.now_ms


def test_a_code_has_forty_bits_and_reads_the_same_however_it_is_typed() -> None:
    assert len(ALPHABET) ** LENGTH == 1 << 40
    assert normal("abcd-2o4l") == normal("ABCD 2041") == "ABCD2041"
    assert not looks_like_code("tomorrow!")
    assert not looks_like_code("ABCD-234")


def test_a_stranger_gets_a_code_the_owner_approves_it_and_both_are_told(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            code = await code_of(talk, "anna")
            notices = [notice.text for notice in (await talk.daemon.notices.listing(OWNER)).notices]
            assert any("Anna (anna) would like to talk" in text for text in notices)
            person = await talk.daemon.channels.desk.approve(OWNER, code.lower())
            assert (person.sender, person.granted_by) == ("anna", OWNER)
            assert "paired now" in (await talk.answers("dm-anna", 2))[-1]
            talk.direct("anna", "hello again")
            assert (await talk.answers("dm-anna", 3))[-1] == "answer 1"
            actions = [
                bytes(entry.event)
                for entry in await entries(talk.daemon, "system:local")
                if entry.kind == "admin.changed"
            ]
            assert [b'"requested"' in each for each in actions].count(True) == 1
            assert [b'"approved"' in each for each in actions].count(True) == 1
            assert all(code.replace("-", "").encode() not in each for each in actions)

    run(scene)


def test_a_code_works_once_for_ten_minutes_and_only_for_whom_it_was_made(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            desk = talk.daemon.channels.desk
            code = await code_of(talk, "anna")
            with pytest.raises(Forbidden):
                await desk.approve("channel:chat:anna", code)
            # Somebody else's code admits nobody: neither who enters it nor who got it.
            talk.direct("bert", f"pair {code}")
            assert "not good" in (await talk.answers("dm-bert"))[-1]
            talk.direct("anna", f"pair {code}")
            assert "not good" in (await talk.answers("dm-anna", 2))[-1]
            assert [person.paired_ms for person in await desk.people()] == [0, 0]
            await desk.approve(OWNER, code)
            with pytest.raises(NotFound):
                await desk.approve(OWNER, code)
            other = await code_of(talk, "carl")
            later(talk, LIFE_MS + 1)
            with pytest.raises(NotFound):
                await desk.approve(OWNER, other)
            assert await desk.pending() == []
            with pytest.raises(NotFound):
                await desk.approve(OWNER, "ZZZZ-ZZZZ")

    run(scene)


def test_who_guesses_is_locked_out_also_over_a_restart_and_the_owner_hears_of_it(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            invitation = await talk.daemon.channels.desk.invite(OWNER, "chat")
            for number in range(5):
                talk.direct("evil", f"pair AAAA-AAA{number}")
                await talk.answers("dm-evil", number + 1)
            assert "Too many wrong codes" in talk.texts("dm-evil")[-1]
            talk.direct("evil", f"pair {invitation.code}")
            assert "Too many wrong codes" in (await talk.answers("dm-evil", 6))[-1]
            notices = [notice.text for notice in (await talk.daemon.notices.listing(OWNER)).notices]
            assert any("wrong pairing codes" in text for text in notices)
        async with chat(tmp_path, SAY, fresh=False) as talk:
            talk.direct("evil", f"pair {invitation.code}")
            assert "Too many wrong codes" in (await talk.answers("dm-evil", 7))[-1]
            # Nobody else is locked out by it.
            talk.direct("anna", f"pair {invitation.code}")
            assert "Welcome" in (await talk.answers("dm-anna"))[-1]
            talk.direct("bert", f"pair {invitation.code}")
            assert "not good" in (await talk.answers("dm-bert"))[-1]
            later(talk, LOCK_MS + 1)
            fresh = await talk.daemon.channels.desk.invite(OWNER, "chat")
            talk.direct("evil", f"pair {fresh.code}")
            assert "Welcome" in (await talk.answers("dm-evil", 8))[-1]

    run(scene)


def test_an_invitation_for_another_channel_is_no_good_here(tmp_path: Path) -> None:
    async def scene() -> None:
        other = '[channels.other]\nkind = "loopback"\n'
        async with chat(tmp_path, SAY, more=other) as talk:
            invitation = await talk.daemon.channels.desk.invite(OWNER, "other")
            talk.direct("anna", f"pair {invitation.code}")
            assert "not good" in (await talk.answers("dm-anna"))[-1]

    run(scene)


def test_who_writes_again_and_again_gets_no_code_after_code(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY, "per_minute = 1000") as talk:
            await code_of(talk, "anna")
            natives = [talk.direct("anna", f"hello {n}") for n in range(10)]
            for native in natives:
                assert await settled(talk, native) == "refused"
            codes = lambda: [text for text in talk.texts("dm-anna") if "Your code is" in text]  # noqa: E731
            await talk.answers("dm-anna", 2)
            assert (len(codes()), len(talk.posted("dm-anna"))) == (1, 2)
            for number in (2, 3):
                later(talk, LIFE_MS + 1)
                await code_of(talk, "anna")
                assert len(codes()) == number
            later(talk, LIFE_MS + 1)
            native = talk.direct("anna", "and now?")
            await settled(talk, native)
            assert "too many codes" in (await talk.answers("dm-anna", 5))[-1]
            assert len(codes()) == 3

    run(scene)


def test_a_pairing_can_end_by_itself_and_be_taken_back(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            desk = talk.daemon.channels.desk
            await desk.approve(OWNER, await code_of(talk, "anna"), for_ms=3_600_000)
            await desk.approve(OWNER, await code_of(talk, "bert"))
            await desk.revoke(OWNER, "chat", "bert")
            assert "no longer paired" in (await talk.answers("dm-bert", 3))[-1]
            for name, state in (("anna", "answered"), ("bert", "refused")):
                assert await settled(talk, talk.direct(name, "hello")) == state
            later(talk, 3_600_001)
            native = talk.direct("anna", "hello")
            assert await settled(talk, native) == "refused"
            assert (await talk.message(native)).reason == "pairing_required"

    run(scene)


def test_every_phase_of_pairing_outlives_a_restart(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            code = await code_of(talk, "anna")
        async with chat(tmp_path, SAY, fresh=False) as talk:
            assert [each.sender for each in await talk.daemon.channels.desk.pending()] == ["anna"]
            await talk.daemon.channels.desk.approve(OWNER, code)
        async with chat(tmp_path, SAY, fresh=False) as talk:
            assert "paired now" in (await talk.answers("dm-anna", 2))[-1]
            with pytest.raises((NotFound, Conflict)):
                await talk.daemon.channels.desk.approve(OWNER, code)
            assert await settled(talk, talk.direct("anna", "hello")) == "answered"
            await talk.daemon.channels.desk.revoke(OWNER, "chat", "anna")
        async with chat(tmp_path, SAY, fresh=False) as talk:
            assert await settled(talk, talk.direct("anna", "hello")) == "refused"

    run(scene)


def test_the_owner_approves_in_chat_as_themselves(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            await talk.link("boss")
            code = await code_of(talk, "anna")
            talk.direct("boss", f"pair {code}")
            assert "Anna on chat is paired now" in (await talk.answers("dm-boss"))[-1]

    run(scene)


def test_several_identities_are_one_person_and_an_unverified_name_is_nobody(tmp_path: Path) -> None:
    async def scene() -> None:
        other = f'[channels.mail]\nkind = "loopback"\nsettings = ["platform={tmp_path}/mail"]\n'
        async with chat(tmp_path, Echo(), more=other) as talk:
            await talk.link("boss")
            await talk.daemon.channels.desk.link(OWNER, "mail", "boss@example.org", OWNER)
            talk.direct("boss", "whoami")
            assert "user:owner" in (await talk.answers("dm-boss"))[-1]
            found = await talk.daemon.db.read(lambda tx: people.of_principal(tx, OWNER))
            assert {(each.connector, each.sender) for each in found} == {
                ("chat", "boss"),
                ("mail", "boss@example.org"),
            }
            native = talk.direct("boss", "give me everything", verified=False)
            assert await settled(talk, native) == "refused"
            assert (await talk.message(native)).reason == "pairing_required"

    run(scene)


def test_a_guest_has_a_budget_of_their_own(tmp_path: Path) -> None:
    async def scene() -> None:
        limit = '[budgets.limits.anna]\ntokens = 1\nper = "principal"\nwho = "channel:chat:anna"\n'
        async with chat(tmp_path, SAY, more=limit) as talk:
            await talk.pair("anna", "bert")
            for name in ("anna", "bert", "anna", "bert"):
                await settled(talk, talk.direct(name, "hello"))
            first, second = talk.texts("dm-anna")
            assert first == "answer 1"
            assert second.startswith("That did not work")
            assert "anna" in second
            assert talk.texts("dm-bert") == ["answer 1", "answer 2"]

    run(scene)


def test_a_stranger_a_guest_and_the_owner_in_one_group_share_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "plan.txt").write_text("the owner's plan")
        read = Turn(calls=(ScriptedCall(name="fs.read", arguments={"path": "plan.txt"}),))
        remembered = Turn(calls=(ScriptedCall(name="memory.search", arguments={"query": "tea"}),))
        turns = [read, remembered, Turn(text="that is all")]
        async with chat(tmp_path, turns) as talk:
            await talk.pair("anna")
            await talk.link("boss")
            talk.direct("boss", "remember that the boss likes green tea")
            await talk.answers("dm-boss")
            stranger = talk.group("carl", "@palyra hello")
            assert await settled(talk, stranger) == "refused"
            guest, owner = talk.group("anna", "@palyra hello"), talk.group("boss", "@palyra hello")
            assert await settled(talk, guest) == "answered"
            assert await settled(talk, owner) == "answered"
            theirs, mine = await talk.message(guest), await talk.message(owner)
            assert theirs.session_id != mine.session_id
            assert (theirs.principal, mine.principal) == ("channel:chat:anna", OWNER)
            told = b"".join(
                bytes(entry.event) for entry in await entries(talk.daemon, theirs.session_id)
            )
            assert b"green tea" not in told
            assert b"owner's plan" not in told
            assert b"no workspace folder" in told
            own = b"".join(
                bytes(entry.event) for entry in await entries(talk.daemon, mine.session_id)
            )
            assert b"owner's plan" in own
            assert b"green tea" in own

    run(scene)


def test_a_group_that_shares_a_session_is_nobodys_and_names_who_speaks(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model, "isolate_session_by_sender = false") as talk:
            await talk.pair("anna", "bert")
            await talk.link("boss")
            natives = []
            for number, name in enumerate(("anna", "bert", "boss")):
                natives.append(talk.group(name, f"@palyra I am {name}"))
                await talk.answers("team", number + 1)
            found = [await talk.message(native) for native in natives]
            assert len({each.session_id for each in found}) == 1
            session = await talk.daemon.db.read(
                lambda tx: sessions.find(tx, session_id=found[0].session_id)
            )
            assert session is not None
            assert session.owner == "channel:chat:#team"
            assert session.workspace == ""
            shown = str(model.requests[-1].messages)
            assert all(
                f"[{name.capitalize()} ({name})]" in shown for name in ("anna", "bert", "boss")
            )
            assert "a guest in a chat, who does not speak for your owner" in shown
            # Each one's words keep their label, also where all share a session.
            inputs = [
                body(each)
                for each in await entries(talk.daemon, found[0].session_id)
                if each.kind == "input.received"
            ]
            sources = [each.get("label", {}).get("sources", []) for each in inputs]
            assert sources == [["channel:chat:anna"], ["channel:chat:bert"], []]

    run(scene)


def test_in_a_group_nobody_answers_for_the_owner_though_all_see_the_buttons(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, ASKING, 'groups = "allow"') as talk:
            await talk.pair("anna")
            await talk.link("boss")
            native = talk.group("boss", "@palyra write it")
            await talk.answers("team")
            yes = talk.posted("team")[0].out.buttons[0].value
            for number, name in enumerate(("anna", "carl")):
                talk.say(yes, name, conversation="team", pressed=True)
                assert "may not answer" in (await talk.answers("team", number + 2))[-1]
            (pending,) = await talk.daemon.db.read(
                lambda tx: approvals.listing(tx, OWNER, pending=True)
            )
            assert pending.decision == ""
            talk.say(yes, "boss", conversation="team", pressed=True)
            assert await settled(talk, native) == "answered"

    run(scene)


def test_threads_are_conversations_of_their_own(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, Echo()) as talk:
            await talk.pair("anna")
            one = talk.group("anna", "@palyra here")
            other = talk.group("anna", "@palyra there", thread="t1")
            await talk.answers("team", 2)
            assert (await talk.message(one)).session_id != (await talk.message(other)).session_id
            assert sorted(post.out.thread for post in talk.posted("team")) == ["", "t1"]

    run(scene)


ASKING = [
    Turn(calls=(ScriptedCall(name="fs.write", arguments={"path": "a.txt", "content": "x"}),)),
    Turn(text="done"),
]


def test_a_policy_can_let_a_guest_answer_and_words_do_what_buttons_do(tmp_path: Path) -> None:
    async def scene() -> None:
        from msgspec.structs import replace

        (tmp_path / "guests").mkdir()
        (tmp_path / "home" / "policies").mkdir(parents=True)
        permit = 'permit (principal == ChannelSender::"chat:anna", action == Action::"approve", resource == Tool::"fs.write");'
        (tmp_path / "home" / "policies" / "guests.cedar").write_text(
            f'@id("anna-answers")\n{permit}\n'
        )
        async with chat(tmp_path, ASKING, f'workspace = "{tmp_path}/guests"') as talk:
            talk.platform.abilities = replace(talk.platform.abilities, buttons=False)
            await talk.pair("anna", "bert")
            native = talk.direct("anna", "write it")
            await talk.answers("dm-anna")
            (pending,) = await talk.daemon.db.read(
                lambda tx: approvals.listing(tx, OWNER, pending=True)
            )
            short = pending.approval_id[-8:]
            talk.direct("bert", f"approve {short}")
            assert "may not answer" in (await talk.answers("dm-bert"))[-1]
            talk.direct("anna", f"approve {short.lower()}")
            assert await settled(talk, native) == "answered"
            assert talk.texts("dm-anna")[-1] == "done"

    run(scene)


def test_an_approval_is_asked_of_the_person_themselves_and_can_be_handed_on(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, ASKING) as talk:
            await talk.link("boss")
            await talk.link("zoe", "user:zoe")
            talk.direct("zoe", "whoami")
            await talk.answers("dm-zoe")
            native = talk.direct("boss", "write it")
            (question,) = await talk.answers("dm-boss")
            assert "needs approval: fs.write" in question
            (pending,) = await talk.daemon.db.read(
                lambda tx: approvals.listing(tx, OWNER, pending=True)
            )
            talk.direct("zoe", f"approve {pending.approval_id}")
            assert "may not answer" in (await talk.answers("dm-zoe", 2))[-1]
            await talk.daemon.channels.asking.route(
                OWNER, pending.approval_id, principal="user:zoe"
            )
            await talk.answers("dm-zoe", 3)
            talk.direct("zoe", f"deny {pending.approval_id} not today")
            assert await settled(talk, native) == "answered"
            session = (await talk.message(native)).session_id
            told = b"".join(bytes(entry.event) for entry in await entries(talk.daemon, session))
            assert b"denied by the user: not today" in told

    run(scene)


def test_the_first_answer_wins_and_a_second_is_told_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, ASKING) as talk:
            await talk.link("boss")
            native = talk.direct("boss", "write it")
            await talk.answers("dm-boss")
            yes = talk.posted("dm-boss")[0].out.buttons[0].value
            for _ in range(2):
                talk.say(yes, "boss", conversation="dm-boss", is_direct=True, pressed=True)
            assert await settled(talk, native) == "answered"
            await talk.until(
                lambda now: any("already answered" in text for text in now.texts("dm-boss"))
            )

    run(scene)


def test_what_a_call_would_do_is_not_shown_to_a_group(tmp_path: Path) -> None:
    async def scene() -> None:
        write = Turn(
            calls=(
                ScriptedCall(
                    name="fs.write", arguments={"path": "a.txt", "content": "the owner's plan"}
                ),
            )
        )
        other = Turn(
            calls=(
                ScriptedCall(
                    name="fs.write",
                    arguments={"path": "b.txt", "content": "the owner's other plan"},
                ),
            )
        )
        async with chat(tmp_path, [write, Turn(text="done"), other, Turn(text="done")]) as talk:
            await talk.link("boss")
            native = talk.group("boss", "@palyra write it")
            (question,) = await talk.answers("team")
            assert "needs approval: fs.write" in question
            assert "the owner's plan" not in question
            talk.say(
                talk.posted("team")[0].out.buttons[0].value,
                "boss",
                conversation="team",
                pressed=True,
            )
            assert await settled(talk, native) == "answered"
            # Where the person can be reached alone, the question goes there, whole.
            talk.direct("boss", "whoami")
            await talk.answers("dm-boss")
            talk.group("boss", "@palyra write it again")
            assert "the owner's other plan" in (await talk.answers("dm-boss", 2))[-1]

    run(scene)
