"""Who looks after the channels, and what the owner is told through them: each notice once, and
nothing about the way itself.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from palyra.agent.approval_steps import Answer
from palyra.core.ids import OWNER
from palyra.features.channels import loopback, outbox
from palyra.features.channels.contract import Lost, OutgoingMessage, SendFailed
from palyra.features.channels.loopback import LoopbackMessage
from palyra.features.channels.rows import outbox as outbox_rows
from palyra.features.channels.views import ChatPlace
from palyra.models.scripted import ScriptedCall, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.store import approvals
from tests.chatting import Chat, chat
from tests.e2e.channels.test_people import later
from tests.inprocess import body, daemon, finished, kinds, say, session, until
from tests.watching_over import STEP_MS, JumpingClock, passes, set_mode, watched

TOLD = '[channel_router]\nnotices_to = "chat/alerts"\n'
MINE = '[channel_router]\napprovals_to = "owner"\n'
ASKING = [
    Turn(calls=(ScriptedCall(name="fs.write", arguments={"path": "a.txt", "content": "x"}),)),
    Turn(text="done"),
]


def run(scene: Callable[[], Awaitable[None]], seconds: float = 60) -> None:
    asyncio.run(asyncio.wait_for(scene(), seconds))


def test_notices_reach_the_chosen_conversation_once_each_over_restarts(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, [Turn(text="yes")]) as talk:
            await talk.daemon.notices.tell(
                "budget", "budget:before", "told before there was a place for it"
            )
        async with chat(tmp_path, [Turn(text="yes")], more=TOLD, fresh=False) as talk:
            await talk.daemon.notices.tell("budget", "budget:1", "the month is nearly used up")
            await talk.daemon.notices.tell("budget", "budget:1", "the month is nearly used up")
            assert await talk.answers("alerts") == ["the month is nearly used up"]
            await talk.daemon.notices.tell("schedule", "other", "somebody else's", to="user:zoe")
        async with chat(tmp_path, [Turn(text="yes")], more=TOLD, fresh=False) as talk:
            await talk.daemon.notices.tell("schedule", "schedule:1:2", "the backup failed")
            assert await talk.answers("alerts", 2) == [
                "the month is nearly used up",
                "the backup failed",
            ]

    run(scene)


def test_a_notice_that_a_defect_keeps_back_holds_up_no_other(tmp_path: Path) -> None:
    refused = """CREATE TRIGGER defect BEFORE INSERT ON channel_outbox
        WHEN instr(NEW.body, 'never to be told') BEGIN SELECT RAISE(ABORT, 'a defect'); END"""

    async def scene() -> None:
        async with chat(tmp_path, [Turn(text="yes")], more=TOLD) as talk:
            await talk.daemon.db.write(lambda tx: tx.run(refused))
            await talk.daemon.notices.tell("budget", "budget:1", "never to be told")
            await talk.daemon.notices.tell("budget", "budget:2", "the month is nearly used up")
            assert await talk.answers("alerts") == ["the month is nearly used up"]

    run(scene)


def test_an_outbox_that_cannot_be_read_for_a_while_is_read_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(outbox, "_RETRY_MS", 1)

    async def scene() -> None:
        async with chat(tmp_path, [Turn(text="yes")]) as talk:
            await talk.pair("anna")
            await talk.daemon.db.write(
                lambda tx: tx.run("ALTER TABLE channel_outbox RENAME COLUMN attempts TO defect")
            )
            talk.daemon.channels.outbox.look()
            await talk.when(lambda: "cannot be read" in caplog.text)
            await talk.daemon.db.write(
                lambda tx: tx.run("ALTER TABLE channel_outbox RENAME COLUMN defect TO attempts")
            )
            talk.direct("anna", "hello")
            assert await talk.answers("dm-anna") == ["yes"]

    run(scene)


def test_an_approval_that_waits_comes_with_buttons_that_work(tmp_path: Path) -> None:
    async def scene() -> None:
        (tmp_path / "guests").mkdir()
        async with chat(tmp_path, ASKING, f'workspace = "{tmp_path}/guests"', more=TOLD) as talk:
            await talk.pair("anna")
            native = talk.direct("anna", "write it")
            await talk.until(lambda seen: len(seen.posted("alerts")) >= 1)
            (put,) = talk.posted("alerts")
            assert [button.label for button in put.out.buttons] == [
                "Approve",
                "For this session",
                "For 1 hour",
                "Deny",
            ]
            (pending,) = await talk.daemon.db.read(
                lambda tx: approvals.listing(tx, OWNER, pending=True)
            )
            await talk.link("boss")
            talk.say(put.out.buttons[0].value, "boss", conversation="alerts", pressed=True)
            assert (await talk.is_(native, "answered")).state == "answered"
            found = await talk.daemon.db.read(lambda tx: approvals.find(tx, pending.approval_id))
            assert found is not None
            assert (found.decision, found.resolved_by) == ("allow", OWNER)

    run(scene)


def test_what_the_owners_own_runs_ask_reaches_the_chat_where_they_are_and_the_first_answer_wins(
    tmp_path: Path,
) -> None:
    write = [
        Turn(calls=(ScriptedCall(name="fs.write", arguments={"path": name, "content": "a plan"}),))
        for name in "abc"
    ]
    turns = [turn for each in write for turn in (each, Turn(text="done"))]

    async def scene() -> None:
        async with chat(tmp_path, turns) as talk:
            await talk.link("boss")
            talk.direct("boss", "whoami")
            await talk.answers("dm-boss")
            where = await session(talk.daemon)
            # Nobody asked for it yet: it is asked where it always is, and nowhere else.
            first = await say(talk.daemon, where, "one")
            asked = await until(
                talk.daemon, where.session_id, "approval.requested", run_id=first.run_id
            )
            await talk.daemon.answers.answer(
                OWNER, body(asked)["approval_id"], Answer(decision="allow"), surface="console"
            )
            await finished(talk.daemon, first)
            second = await say(talk.daemon, where, "two")
            await until(talk.daemon, where.session_id, "approval.requested", run_id=second.run_id)
            assert len(talk.posted("dm-boss")) == 1
        async with chat(tmp_path, turns, more=MINE, fresh=False) as talk:
            # What waited when it was switched on is asked too; a button answers it, and nobody
            # else's does.
            await talk.until(lambda seen: len(seen.posted("dm-boss")) == 2)
            question = talk.posted("dm-boss")[1]
            assert "A run of yours" in question.text
            assert "a plan" in question.text
            yes = question.out.buttons[0].value
            await talk.pair("anna")
            talk.say(yes, "anna", conversation="dm-anna", is_direct=True, pressed=True)
            assert "may not answer" in (await talk.answers("dm-anna"))[-1]
            talk.say(yes, "boss", conversation="dm-boss", is_direct=True, pressed=True)
            assert (await finished(talk.daemon, second)).kind == "run.completed"
            third = await say(talk.daemon, where, "three")
            asked = await until(
                talk.daemon, where.session_id, "approval.requested", run_id=third.run_id
            )
            name = body(asked)["approval_id"]
            put = await asked_in(talk, name)
            await talk.daemon.answers.answer(
                OWNER, name, Answer(decision="deny"), surface="console"
            )
            await talk.until(
                lambda seen: any(
                    each.native_id == put.native_id and each.edits
                    for each in seen.posted("dm-boss")
                )
            )
            assert put.text.endswith("Denied by user:owner.")
            talk.direct("boss", f"approve {name[-8:]}")
            await talk.until(lambda seen: "no approval that waits" in seen.texts("dm-boss")[-1])

    run(scene)


def test_a_question_that_was_answered_while_nobody_was_connected_says_so_afterwards(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with chat(
            tmp_path, ASKING, more='[channel_router]\napprovals_to = "chat/team"\n'
        ) as talk:
            asked = await say(talk.daemon, await session(talk.daemon), "write it")
            await talk.answers("team")
        async with daemon(tmp_path, ASKING) as alone:
            (pending,) = await alone.db.read(lambda tx: approvals.listing(tx, OWNER, pending=True))
            await alone.answers.answer(
                OWNER, pending.approval_id, Answer(decision="allow"), surface="console"
            )
            await finished(alone, asked)
        async with chat(tmp_path, ASKING, fresh=False) as talk:
            await talk.until(lambda seen: seen.posted("team")[0].edits == 1)
            assert talk.texts("team")[0].endswith("Approved by user:owner.")
        async with chat(tmp_path, ASKING, fresh=False) as talk:
            assert await talk.daemon.db.read(outbox_rows.unclosed) == []

    run(scene)


def test_in_a_conversation_with_others_it_is_not_shown_what_the_owners_call_would_do(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with chat(
            tmp_path, ASKING, more='[channel_router]\napprovals_to = "chat/team"\n'
        ) as talk:
            where = await session(talk.daemon)
            await say(talk.daemon, where, "write it")
            (question,) = await talk.answers("team")
            assert "fs.write" in question
            assert "is in the console" in question

    run(scene)


async def asked_in(talk: Chat, approval_id: str) -> LoopbackMessage:
    def there(seen: Chat) -> list[LoopbackMessage]:
        return [
            each
            for each in seen.posted()
            if any(approval_id in button.value for button in each.out.buttons)
        ]

    await talk.until(lambda seen: bool(there(seen)))
    return there(talk)[0]


def test_the_way_of_old_messages_is_forgotten_but_not_dead_letters_nor_what_was_said(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with chat(tmp_path, [Turn(text=f"answer {n}") for n in range(9)]) as talk:
            await talk.pair("anna", "bert")
            old = talk.direct("anna", "hello")
            said = await talk.is_(old, "answered")

            def gone(out: OutgoingMessage) -> None:
                raise SendFailed("this conversation is gone", permanent=True)

            talk.platform.trouble = gone
            undelivered = talk.direct("bert", "hello")
            await talk.is_(undelivered, "failed")
            talk.platform.trouble = lambda out: None
            await talk.daemon.channels.say(OWNER, ChatPlace("chat", "dm-anna"), "of our own accord")
            await talk.answers("dm-anna", 2)
            await talk.daemon.channels.outbox.idle.wait()
            later(talk, 91 * 86_400_000)
            new = talk.direct("anna", "and again")
            await talk.is_(new, "answered")
            await talk.daemon.retention.clean()
            assert [each.inbound.native_id for each in await talk.daemon.channels.messages()] == [
                new,
                undelivered,
            ]
            assert await talk.daemon.db.read(
                lambda tx: tx.all("SELECT count(*) FROM channel_outbox")
            ) == [(2,)]
            assert "run.completed" in await kinds(talk.daemon, said.session_id)
            (letter,) = await talk.daemon.channels.dead()
            await talk.daemon.channels.drop(OWNER, letter.reply_id)
            assert await talk.daemon.channels.dead() == []
            steps = [
                each.step
                for each in (await talk.daemon.channels.trace(f"chat:{undelivered}")).steps
            ]
            assert steps[-1] == "dropped"
            later(talk, 91 * 86_400_000)
            last = talk.direct("anna", "once more")
            await talk.is_(last, "answered")
            await talk.daemon.retention.clean()
            assert [each.inbound.native_id for each in await talk.daemon.channels.messages()] == [
                last
            ]

    run(scene)


def test_nobody_waits_longer_than_an_hour_however_long_a_platform_asks_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, [Turn(text="yes")]) as talk:
            await talk.pair("anna")
            errors: list[Exception] = [
                SendFailed("wait", retry_after_ms=10**12),
                Lost("wait", retry_after_ms=10**12),
            ]
            slept: list[int] = []

            def asks(out: OutgoingMessage) -> None:
                if errors:
                    raise errors.pop()

            async def sleep(ms: int) -> None:
                if ms < 600_000:
                    await really(ms)
                else:
                    # It was waited for.
                    slept.append(ms)
                    talk.daemon.clock.now_ms = lambda: now_ms() + sum(slept)  # type: ignore[method-assign]

            now_ms, really = talk.daemon.clock.now_ms, talk.daemon.clock.sleep
            talk.platform.trouble = asks
            talk.daemon.clock.sleep = sleep  # type: ignore[method-assign]
            await talk.is_(talk.direct("anna", "hello"), "answered")
            assert [round(ms, -4) for ms in slept] == [3_600_000, 3_600_000]
            # Whoever connects again waits by the same measure.
            assert Lost("later", retry_after_ms=10**12).retry_after_ms == 3_600_000

    run(scene)


def test_what_is_told_about_the_way_itself_does_not_go_that_way(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, [Turn(text="yes")], more=TOLD) as talk:
            await talk.daemon.notices.tell(
                "channel", "dead:01M7G79TTYJWYS4J8S3DG4YCJR", "a message could not be delivered"
            )
            await talk.daemon.notices.tell(
                "channel", "failed:chat:1", "the channel chat does not work"
            )
            await talk.daemon.notices.tell("incident", "incident:1", "the disk is nearly full")
            assert await talk.answers("alerts") == ["the disk is nearly full"]

    run(scene)


def test_a_channel_that_stays_away_is_one_incident_and_is_connected_anew_only_in_auto_mode(
    tmp_path: Path,
) -> None:
    world = f"{tmp_path}/care"
    loopback.forget(world)
    platform = loopback.platform(world)
    platform.refuses = "the token was revoked"
    table = f'[channels.care]\nkind = "loopback"\nsettings = ["platform={world}"]\n'

    async def scenario(d: Daemon, clock: JumpingClock) -> None:
        async with asyncio.timeout(20):
            while d.channels.connections.status("care").state != "failed":
                await d.db.write(lambda tx: None)
        set_mode(d, "observe_only")
        d.watchdog.use(msgspec.structs.replace(d.watchdog.settings, helper_ms=2 * STEP_MS))
        await passes(d, clock, STEP_MS)
        assert [each for each in await d.incidents.opened() if each.domain == "connector"] == []
        await passes(d, clock, 4 * STEP_MS)
        (incident,) = [each for each in await d.incidents.opened() if each.domain == "connector"]
        assert "the token was revoked" in incident.summary
        assert not incident.tried
        (check,) = [each for each in (await d.doctor.examine()).checks if each.id == "channel:care"]
        assert (check.state, check.repairable) == ("fail", True)
        platform.refuses = ""
        set_mode(d, "auto")
        await passes(d, clock, STEP_MS)
        async with asyncio.timeout(20):
            while d.channels.connections.status("care").state != "connected":
                await d.db.write(lambda tx: None)
        await passes(d, clock, STEP_MS)
        assert [each for each in await d.incidents.opened() if each.domain == "connector"] == []
        (check,) = [each for each in (await d.doctor.examine()).checks if each.id == "channel:care"]
        assert check.state == "ok"

    watched(tmp_path, [Turn(text="yes")], scenario, table)
