"""The agent writes to somebody of its own accord: only to those who were admitted, only if it may,
and once.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from palyra.agent.approval_steps import Answer
from palyra.core.errors import PalyraError
from palyra.core.events import Entry
from palyra.core.ids import OWNER
from palyra.core.ports import CallContext
from palyra.core.tools import Subject
from palyra.features.channels.rows import outbox
from palyra.features.channels.tools import SendArguments
from palyra.models import token_count
from palyra.models.scripted import ScriptedCall, ScriptedModel, Turn
from palyra.store import approvals
from palyra.store.approvals import Approval
from tests.chatting import Chat, chat
from tests.inprocess import body, daemon, finished, say, session, until


def run(scene: Callable[[], Awaitable[None]], seconds: float = 60) -> None:
    asyncio.run(asyncio.wait_for(scene(), seconds))


def sending(to: str, text: str = "the build is done", **more: Any) -> Turn:
    return Turn(
        calls=(ScriptedCall(name="message.send", arguments={"to": to, "text": text, **more}),)
    )


def policies(folder: Path, text: str) -> None:
    (folder / "home" / "policies").mkdir(parents=True, exist_ok=True)
    (folder / "home" / "policies" / "messages.cedar").write_text(text)


PERMIT = """@id("messages-{name}")
permit (principal, action in [Action::"run_unattended", Action::"send_private"], resource == Tool::"message.send")
when {{ {when} }};
"""


async def asked(talk: Chat, where: Any) -> Approval:
    await until(talk.daemon, where.session_id, "approval.requested")
    (pending,) = await talk.daemon.db.read(lambda tx: approvals.listing(tx, OWNER, pending=True))
    return pending


async def result(talk: Chat, entry: Entry) -> dict[str, Any]:
    found = await until(talk.daemon, entry.tape, "tool.finished", run_id=entry.run_id)
    return body(found)


async def met(talk: Chat, *people: str) -> None:
    """Paired, and has written directly, so that it is known where they are."""
    await talk.pair(*people)
    for who in people:
        await talk.is_(talk.direct(who, "whoami"), "answered")


def test_a_message_is_asked_about_shows_whom_it_goes_to_and_is_sent_once_with_its_outbox_id(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with chat(
            tmp_path, [sending("chat/anna", "ready, @everyone"), Turn(text="told her")]
        ) as talk:
            await met(talk, "anna")
            where = await session(talk.daemon)
            submitted = await say(talk.daemon, where, "tell anna that it is done")
            pending = await asked(talk, where)
            assert pending.request.preview.title == "message to chat/dm-anna on chat"
            assert pending.request.subjects == (
                Subject("message.send", "recipient", "chat/dm-anna"),
            )
            assert "sends a message to chat/dm-anna" in pending.request.why
            assert len(talk.posted("dm-anna")) == 1, "nothing is sent before somebody said yes"
            await talk.daemon.answers.answer(
                OWNER, pending.approval_id, Answer(decision="allow"), surface="test"
            )
            done = await finished(talk.daemon, submitted)
            told = await result(talk, done)
            texts = await talk.answers("dm-anna", 2)
            assert texts[1].startswith("ready, ")
            assert "@everyone" not in texts[1]
            replies = await talk.daemon.db.read(lambda tx: outbox.of_reply(tx, told["data"]["id"]))
            assert [each.kind for each in replies] == ["message"]
            assert told["data"]["id"] in told["text"]
            # The same call again, as after a crash: the outbox has it already.
            context = CallContext(
                principal=OWNER,
                session_id=where.session_id,
                run_id=submitted.run_id,
                call_id=told["call_id"],
                key=told["call_id"],
                workspace=str(tmp_path / "work"),
            )
            again = SendArguments(to="chat/anna", text="ready, @everyone")
            assert (
                await talk.daemon.catalogue.get("message.send").execute(again, context)
            ).outcome == "ok"
            assert (
                len(await talk.daemon.db.read(lambda tx: outbox.of_reply(tx, told["data"]["id"])))
                == 1
            )

    run(scene)


def test_a_policy_permits_one_conversation_or_one_channel_and_nothing_beside_it(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        policies(
            tmp_path, PERMIT.format(name="anna", when='context.recipients == ["chat/dm-anna"]')
        )
        async with chat(
            tmp_path,
            [sending("chat/anna"), Turn(text="sent"), sending("chat/bert"), Turn(text="sent")],
        ) as talk:
            await met(talk, "anna", "bert")
            where = await session(talk.daemon)
            await finished(talk.daemon, await say(talk.daemon, where, "tell anna"))
            assert (await talk.answers("dm-anna", 2))[1] == "the build is done"
            submitted = await say(talk.daemon, where, "tell bert")
            pending = await asked(talk, where)
            assert pending.request.preview.title == "message to chat/dm-bert on chat"
            await talk.daemon.answers.answer(
                OWNER, pending.approval_id, Answer(decision="deny"), surface="test"
            )
            await finished(talk.daemon, submitted)
            assert len(talk.posted("dm-bert")) == 1
        policies(tmp_path, PERMIT.format(name="chat", when='context.program == "chat"'))
        async with chat(tmp_path, [sending("chat/bert"), Turn(text="sent")], fresh=False) as talk:
            where = await session(talk.daemon)
            await finished(talk.daemon, await say(talk.daemon, where, "tell bert"))
            assert (await talk.answers("dm-bert", 2))[1] == "the build is done"

    run(scene)


def test_always_for_one_recipient_writes_a_policy_for_that_one(tmp_path: Path) -> None:
    async def scene() -> None:
        turns = [
            sending("chat/anna"),
            Turn(text="sent"),
            sending("chat/anna", "and again"),
            Turn(text="sent"),
        ]
        async with chat(tmp_path, turns) as talk:
            await met(talk, "anna")
            where = await session(talk.daemon)
            submitted = await say(talk.daemon, where, "tell anna")
            pending = await asked(talk, where)
            await talk.daemon.answers.answer(
                OWNER, pending.approval_id, Answer(decision="allow", scope="always"), surface="test"
            )
            await finished(talk.daemon, submitted)
            written = (tmp_path / "home" / "policies" / "always.cedar").read_text()
            assert 'context.recipients == ["chat/dm-anna"]' in written
            await finished(talk.daemon, await say(talk.daemon, where, "tell her again"))
            assert (await talk.answers("dm-anna", 3))[2] == "and again"

    run(scene)


@pytest.mark.parametrize(
    "to",
    [
        "chat/eve",
        "chat/dm-eve",
        "chat/gone",
        "chat/dm-gone",
        "chat",
        "mail/anna",
        "owner",
        "chat/nowhere",
    ],
)
def test_nobody_is_written_to_who_was_not_admitted(tmp_path: Path, to: str) -> None:
    async def scene() -> None:
        async with chat(tmp_path, [sending(to), Turn(text="well")]) as talk:
            await met(talk, "anna", "gone")
            await talk.daemon.channels.desk.revoke(OWNER, "chat", "gone")
            await talk.is_(talk.direct("eve", "let me in"), "refused")
            where = await session(talk.daemon)
            done = await finished(talk.daemon, await say(talk.daemon, where, "write"))
            told = await result(talk, done)
            assert told["outcome"] == "error"
            assert "the build is done" not in str(talk.texts())

    run(scene)


def test_the_owner_is_reached_where_they_last_wrote_whatever_name_is_used(tmp_path: Path) -> None:
    async def scene() -> None:
        policies(tmp_path, PERMIT.format(name="owner", when='context.recipients == ["owner"]'))
        turns = [
            sending("owner"),
            Turn(text="a"),
            sending("chat/boss"),
            Turn(text="b"),
            sending("chat/dm-boss"),
            Turn(text="c"),
        ]
        async with chat(tmp_path, turns) as talk:
            await talk.link("boss")
            await talk.is_(talk.direct("boss", "whoami"), "answered")
            where = await session(talk.daemon)
            for number in range(3):
                await finished(talk.daemon, await say(talk.daemon, where, "tell me"))
                assert (await talk.answers("dm-boss", number + 2))[-1] == "the build is done"

    run(scene)


def test_a_file_goes_along_and_counts_as_private_data_that_leaves(tmp_path: Path) -> None:
    async def scene() -> None:
        # Permitted to write, but not to take private data out.
        policies(
            tmp_path,
            PERMIT.format(name="anna", when="true").replace(', Action::"send_private"', ""),
        )
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "plan.txt").write_text("the plan")
        (tmp_path / "work" / ".env").write_text("KEY=1")
        turns = [
            sending("chat/anna", files=[".env"]),
            sending("chat/anna", files=["plan.txt"]),
            Turn(text="sent"),
        ]
        async with chat(tmp_path, turns) as talk:
            await met(talk, "anna")
            where = await session(talk.daemon)
            submitted = await say(talk.daemon, where, "send anna the plan")
            pending = await asked(talk, where)
            assert pending.request.flow is not None
            assert pending.request.flow.sends_private
            await talk.daemon.answers.answer(
                OWNER, pending.approval_id, Answer(decision="allow"), surface="test"
            )
            await finished(talk.daemon, submitted)
            await talk.answers("dm-anna", 2)
            (file,) = talk.posted("dm-anna")[1].out.files
            assert (file.name, file.data) == ("plan.txt", b"the plan")
            assert len(talk.posted("dm-anna")) == 2, (
                "the file with secrets was refused before anybody was asked"
            )

    run(scene)


def test_what_is_sent_while_the_channel_is_paused_waits_in_the_outbox(tmp_path: Path) -> None:
    async def scene() -> None:
        policies(tmp_path, PERMIT.format(name="all", when="true"))
        async with chat(tmp_path, [sending("chat/anna"), Turn(text="sent")]) as talk:
            await met(talk, "anna")
            await talk.daemon.channels.pause(OWNER, "chat", paused=True)
            where = await session(talk.daemon)
            done = await finished(talk.daemon, await say(talk.daemon, where, "tell anna"))
            assert "when chat is connected" in (await result(talk, done))["text"]
            assert len(talk.posted("dm-anna")) == 1
            await talk.daemon.channels.pause(OWNER, "chat", paused=False)
            assert (await talk.answers("dm-anna", 2))[1] == "the build is done"

    run(scene)


def test_what_was_judged_is_what_is_sent_though_somebody_moves_meanwhile(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, [sending("chat/anna"), Turn(text="sent")]) as talk:
            await met(talk, "anna")
            where = await session(talk.daemon)
            submitted = await say(talk.daemon, where, "tell anna")
            pending = await asked(talk, where)
            await talk.is_(
                talk.say("whoami", "anna", conversation="elsewhere", is_direct=True), "answered"
            )
            await talk.daemon.answers.answer(
                OWNER, pending.approval_id, Answer(decision="allow"), surface="test"
            )
            told = await result(talk, await finished(talk.daemon, submitted))
            assert (told["outcome"], "make the call again" in told["text"]) == ("error", True)
            assert "the build is done" not in str(talk.texts())

    run(scene)


def test_the_tool_is_offered_only_where_there_is_a_channel_and_the_prompt_stays_small(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        model = ScriptedModel(lambda request: Turn(text="yes"))
        async with chat(tmp_path, model) as talk:
            where = await session(talk.daemon)
            await finished(talk.daemon, await say(talk.daemon, where, "hi"))
            assert "message.send" not in [spec.name for spec in model.requests[-1].tools]
            await finished(talk.daemon, await say(talk.daemon, where, "tell Anna I am here"))
            specs = [spec for spec in model.requests[-1].tools if not spec.name.startswith("test.")]
            assert "message.send" in [spec.name for spec in specs]
            tools = [
                {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
                for spec in specs
            ]
            fixed = token_count.count(model.requests[-1].instructions) + token_count.count(
                json.dumps(tools, separators=(",", ":"))
            )
            assert fixed < 2_000
            off = replace(talk.daemon.channels._book.get("chat"), enabled=False)
            await talk.daemon.channels.apply({"chat": off})
            with pytest.raises(PalyraError):
                talk.daemon.catalogue.get("message.send")
        async with daemon(tmp_path, [Turn(text="yes")]) as opened:
            assert "message.send" not in [spec.name for spec in opened.catalogue.specs()]

    run(scene)
