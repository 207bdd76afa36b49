"""A chat with the agent behind it: what becomes of messages, who is heard, what is answered, and
that nothing is lost.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palyra.core.ids import OWNER
from palyra.core.messages import Emit, ModelReply, ModelRequest, UserMessage
from palyra.features.channels.contract import OutgoingMessage, SendFailed
from palyra.features.channels.loopback import EVERYTHING
from palyra.features.channels.model import ORDER, Inbound, InboundFile, Sender, calls_everyone
from palyra.features.channels.rows import messages
from palyra.features.channels.rows.outbox import SentFile
from palyra.features.channels.views import ChatPlace
from palyra.models.scripted import Script, ScriptedCall, ScriptedModel, StreamPause, Turn
from palyra.store import artifacts, runs, sessions
from tests.chatting import Chat, chat
from tests.clocks import HeldClock
from tests.faults import held_writer
from tests.inprocess import entries, session

SAY = [Turn(text=f"answer {n}") for n in range(1, 40)]


class Echo:
    """A model that answers with the last thing it was told, and can be made slow for those who say
    so.
    """

    name = "scripted"

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.slow = asyncio.Event()
        self.streaming = 0

    async def stream(self, request: ModelRequest, emit: Emit) -> ModelReply:
        self.requests.append(request)
        said = next(
            message for message in reversed(request.messages) if isinstance(message, UserMessage)
        )
        text = "\n".join(part.text for part in said.parts if hasattr(part, "text"))
        if "slow" in text:
            self.streaming += 1
            if "stream" in text:
                while not self.slow.is_set():
                    emit("text", "word ")
                    await asyncio.sleep(0.02)  # As a model writes: fifty words a second.
            await self.slow.wait()
        return ModelReply(text=f"echo: {text}")


def run(scene: Callable[[], Awaitable[None]], seconds: float = 60) -> None:
    asyncio.run(asyncio.wait_for(scene(), seconds))


async def settled(talk: Chat, native_id: str, seconds: float = 20) -> str:
    """The state of a message once it has ended."""
    return (await talk.is_(native_id, "answered", "refused", "failed", seconds=seconds)).state


def held_clock(talk: Chat) -> HeldClock:
    """Time for whoever waits stands still from now on, until the test moves it."""
    clock = HeldClock(talk.daemon.clock.now_ms())
    talk.daemon.clock.ticks_ms, talk.daemon.clock.sleep = clock.ticks_ms, clock.sleep  # type: ignore[method-assign]
    return clock


def test_a_message_of_somebody_who_is_paired_is_answered_and_traced(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            await talk.pair("anna")
            native = talk.direct("anna", "hello")
            assert await talk.answers("dm-anna") == ["answer 1"]
            assert await settled(talk, native) == "answered"
            trace = await talk.daemon.channels.trace(f"chat:{native}")
            assert [step.step for step in trace.steps] == [
                "received",
                "accepted",
                "held",
                "queued",
                "sent",
                "answered",
            ]
            assert talk.posted()[0].out.reply_to == native
            row = await talk.daemon.db.read(lambda tx: runs.find(tx, trace.message.run_id))
            assert row is not None
            assert (row.origin, row.principal) == ("channel", "channel:chat:anna")
            kinds = [entry.kind for entry in await entries(talk.daemon, "system:local")]
            assert kinds.count("message.received") == kinds.count("reply.sent") == 1

    run(scene)


def test_messages_in_quick_succession_are_one_input_in_order_and_each_is_answered(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model) as talk:
            await talk.pair("anna")
            clock = held_clock(talk)
            natives = [talk.direct("anna", text) for text in ("one", "two", "three")]
            for native in natives:
                await talk.seen(native)
            clock.advance(talk.daemon.channels.intake.holding.quiet_ms)
            (answer,) = await talk.answers("dm-anna")
            assert "one\ntwo\nthree" in answer
            assert [await settled(talk, native) for native in natives] == ["answered"] * 3
            assert len({(await talk.message(native)).run_id for native in natives}) == 1
            assert len(talk.posted()) == 1

    run(scene)


def test_a_file_does_not_wait_and_reaches_the_agent(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model, quiet_ms=60_000) as talk:
            await talk.pair("anna")
            talk.direct(
                "anna", "look", files=(InboundFile("notes.txt", b"the secret ingredient is salt"),)
            )
            (answer,) = await talk.answers("dm-anna")
            assert "salt" in str(model.requests[0].messages)
            assert "look" in answer

    run(scene)


def test_a_message_that_comes_twice_is_answered_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            await talk.pair("anna")
            for _ in range(3):
                talk.direct("anna", "hello", native_id="same")
            other = talk.direct("anna", "and another")
            await settled(talk, "same")
            await settled(talk, other)
            steps = [step.step for step in (await talk.daemon.channels.trace("chat:same")).steps]
            assert steps.count("duplicate") == 2
            assert steps.count("answered") == 1

    run(scene)


def test_what_is_refused_says_why_and_reaches_no_model(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model, 'deny = ["evil"]\nper_minute = 2') as talk:
            await talk.pair("anna", "evil")
            cases = {
                talk.direct("anna", "  "): "empty",
                talk.direct("anna", "x" * 40_000): "oversized",
                talk.direct("evil", "hello"): "sender_denied",
                talk.group("carl", "@palyra hello"): "not_allow_listed",
                talk.direct("dora", "hello"): "pairing_required",
                talk.group("bert", "hello", conversation="x"): "not_allow_listed",
                talk.direct("anna", "a third message"): "over_limit",
            }
            for native, reason in cases.items():
                assert await settled(talk, native) == "refused"
                assert (await talk.message(native)).reason == reason
            assert model.requests == []
            assert len(await talk.answers("dm-anna", 2)) == 2
            await talk.daemon.channels.pause(OWNER, "chat", paused=True)
            off = talk.direct("anna", "anybody there?")
            assert await settled(talk, off) == "refused"
            assert (await talk.message(off)).reason == "channel_off"
            await talk.daemon.channels.pause(OWNER, "", paused=True)
            off = talk.direct("anna", "hello?")
            await settled(talk, off)
            assert (await talk.message(off)).reason == "router_off"

    run(scene)


def test_rules_change_while_it_runs_and_stay(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            await talk.daemon.channels.change_rules(OWNER, "chat", {"direct": "deny"})
            native = talk.direct("anna", "hello")
            await settled(talk, native)
            assert (await talk.message(native)).reason == "direct_denied"
        async with chat(tmp_path, SAY, fresh=False) as talk:
            assert (await talk.daemon.channels.status("chat")).rules.direct == "deny"
            await talk.daemon.channels.change_rules(OWNER, "chat", {"direct": None})
            assert (await talk.daemon.channels.status("chat")).rules.direct == "pairing"
            kinds = [
                (entry.kind, b'"rules changed"' in bytes(entry.event))
                for entry in await entries(talk.daemon, "system:local")
            ]
            assert kinds.count(("admin.changed", True)) == 2

    run(scene)


_TEXTS = st.sampled_from(
    [
        "hello",
        "@palyra hi",
        "@palyrabot hi",
        "",
        "stop",
        "@everyone hi",
        "pair ABCD-2345",
        "status",
        "/new",
        "y" * 33_000,
    ]
)
_MESSAGES: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    who=st.sampled_from(["anna", "bert", "carl", "owner"]),
    text=_TEXTS,
    is_direct=st.booleans(),
    mentions_everyone=st.booleans(),
    mentions_agent=st.booleans(),
    verified=st.booleans(),
    thread=st.sampled_from(["", "t1"]),
)
_RULES = st.fixed_dictionaries(
    {
        "allow": st.sampled_from([[], ["bert"]]),
        "deny": st.sampled_from([[], ["carl"]]),
        "direct": st.sampled_from(["deny", "pairing", "allow"]),
        "groups": st.sampled_from(["paired", "allow"]),
        "mention": st.booleans(),
        "broadcast": st.sampled_from(["deny", "mention_only", "allow"]),
        "isolate_session_by_sender": st.booleans(),
        "per_minute": st.sampled_from([1, 3, 1_000]),
        "waiting": st.sampled_from([1, 50]),
    }
)


def test_preview_says_what_then_happens(tmp_path: Path) -> None:
    """One daemon, many messages: what the preview said of each is what became of it."""

    async def scene(cases: list[tuple[dict[str, Any], dict[str, Any]]]) -> set[str]:
        seen: set[str] = set()
        async with chat(tmp_path, Echo()) as talk:
            await talk.pair("anna")
            await talk.link("owner")
            # How much of each one's came in the last minute and is under way must not change
            # between preview and message.
            now_ms = talk.daemon.clock.now_ms()
            talk.daemon.db._clock = lambda: now_ms
            open_ = Inbound(
                native_id="open",
                conversation="elsewhere",
                sender=Sender("anna"),
                text="never routed",
            )
            take = partial(
                messages.take,
                connector="chat",
                message_id=talk.daemon.clock.new_id(),
                principal="channel:chat:anna",
            )
            await talk.daemon.db.write(partial(take, inbound=open_))
            for number, (message, rules) in enumerate(cases):
                await talk.daemon.channels.change_rules(OWNER, "chat", rules)
                where = f"dm-{message['who']}" if message["is_direct"] else "team"
                given = dict(message)
                who = given.pop("who")
                verified = given.pop("verified")
                inbound = Inbound(
                    native_id=f"p{number}",
                    conversation=where,
                    sender=Sender(who, "", verified),
                    **given,
                )
                said = await talk.daemon.channels.preview("chat", inbound)
                talk.platform.say(inbound)
                await settled(talk, f"p{number}")
                found = await talk.message(f"p{number}")
                happened = found.reason if found.state == "refused" else "accepted"
                assert happened == said.decision.reason, (message, rules, found)
                if found.session_id:
                    session = await talk.daemon.db.read(
                        partial(sessions.find, session_id=found.session_id)
                    )
                    assert session is not None
                    assert session.owner == said.acts_as
                seen.add(happened)
        return seen

    collected: list[tuple[dict[str, Any], dict[str, Any]]] = []

    @settings(
        max_examples=120,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(_MESSAGES, _RULES)
    def collect(message: dict[str, Any], rules: dict[str, Any]) -> None:
        collected.append((message, rules))

    collect()
    seen = asyncio.run(asyncio.wait_for(scene(collected), 100))
    assert seen >= set(ORDER) - {"router_off", "channel_off"}


def test_a_slow_conversation_holds_nobody_up(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model, "concurrency = 2") as talk:
            people = [f"p{n}" for n in range(6)]
            await talk.pair("anna", *people)
            talk.direct("anna", "this is slow")
            for name in people:
                talk.direct(name, "quick")
            for name in people:
                await talk.answers(f"dm-{name}")
            assert talk.texts("dm-anna") == []
            model.slow.set()
            await talk.answers("dm-anna")

    run(scene)


def test_stop_from_chat_ends_the_run_within_a_second_while_ten_others_stream(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model, "concurrency = 20") as talk:
            people = [f"p{n}" for n in range(10)]
            await talk.pair("anna", *people)
            native = talk.direct("anna", "this is slow")
            for name in people:
                talk.direct(name, "slow too: stream on")
            await talk.when(lambda: model.streaming >= 11)
            run_id = (await talk.message(native)).run_id
            # Of our own time: what others on the machine take is not ours. Whoever waits below is
            # busy, and so counts as well.
            began = time.process_time()
            stop = talk.direct("anna", "STOP")
            await talk.ends(run_id, "cancelled")
            assert time.process_time() - began <= 1.0
            await settled(talk, stop)
            assert any("1 run was ended" in text for text in talk.texts("dm-anna"))
            assert all("STOP" not in str(request.messages) for request in model.requests)
            assert talk.daemon.runs.working == 10
            model.slow.set()
            for name in people:
                await talk.answers(f"dm-{name}")
            assert await settled(talk, native) == "answered"

    run(scene)


def test_stop_also_drops_what_was_said_and_not_begun(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model, quiet_ms=60_000) as talk:
            await talk.pair("anna")
            native = talk.direct("anna", "delete everything")
            await talk.is_(native, "held")
            await settled(talk, talk.direct("anna", "stop"))
            assert await settled(talk, native) == "failed"
            assert model.requests == []

    run(scene)


def test_stop_also_drops_what_is_just_being_given_to_the_agent(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model) as talk:
            attachments = talk.daemon.channels.intake.holding._submitting._attachments
            keep, reading, goes_on = attachments.keep, asyncio.Event(), asyncio.Event()

            async def slow(*given: Any) -> Any:
                reading.set()
                await goes_on.wait()
                return await keep(*given)

            attachments.keep = slow  # type: ignore[method-assign, assignment]
            await talk.pair("anna")
            native = talk.direct(
                "anna", "delete everything", files=(InboundFile("list.txt", b"everything"),)
            )
            await asyncio.wait_for(reading.wait(), 20)
            await settled(talk, talk.direct("anna", "stop"))
            goes_on.set()
            assert await settled(talk, native) == "failed"
            attachments.keep = keep  # type: ignore[method-assign]
            assert await settled(talk, talk.direct("anna", "and now?")) == "answered"
            assert len(model.requests) == 1

    run(scene)


def test_what_is_said_right_after_a_stop_is_done(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, Echo()) as talk:
            await talk.pair("anna")
            before, stop, after = (
                talk.direct("anna", text) for text in ("do this", "STOP", "do that")
            )
            assert [await settled(talk, each) for each in (before, stop, after)] == [
                "failed",
                "answered",
                "answered",
            ]

    run(scene)


def test_stop_also_drops_what_came_before_it_and_was_not_looked_at_yet(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model, quiet_ms=300) as talk:
            await talk.pair("anna")
            # All of it is stored at once, and a STOP is looked at first.
            with held_writer(talk.daemon) as writer:
                taking = []
                for text in ("one", "two", "three", "stop", "go on"):
                    said = Inbound(
                        native_id=text,
                        conversation="dm-anna",
                        sender=Sender("anna"),
                        text=text,
                        is_direct=True,
                    )
                    taking.append(
                        asyncio.create_task(talk.daemon.channels.intake.take("chat", said))
                    )
                await writer.handed_over(5)
            await asyncio.gather(*taking)
            assert await settled(talk, "stop") == "answered"
            assert [await settled(talk, each) for each in ("one", "two", "three")] == ["failed"] * 3
            # What comes after it is done, and alone.
            assert await settled(talk, "go on") == "answered"
            (answer,) = [text for text in talk.texts("dm-anna") if text.startswith("echo")]
            assert "go on" in answer
            assert not any(text in answer for text in ("one\n", "two", "three"))

    run(scene)


def test_long_answers_arrive_in_order_and_whole(tmp_path: Path) -> None:
    async def scene() -> None:
        code = "\n".join(f"print({n}, '🦀')" for n in range(400))
        answer = (
            f"Here:\n\n````markdown\n```python\n{code}\n```\n````\n\n| a | b |\n|---|---|\n"
            + "\n".join(f"| {n} | é |" for n in range(300))
        )
        async with chat(tmp_path, [Turn(text=answer)]) as talk:
            await talk.pair("anna")
            native = talk.direct("anna", "write a lot")
            assert await settled(talk, native) == "answered"
            texts = talk.texts("dm-anna")
            assert len(texts) > 3
            assert all(len(text) <= 2_000 for text in texts)
            lines = [line for text in texts for line in text.split("\n")]
            assert [line for line in lines if line.startswith("print")] == code.split("\n")
            assert [line for line in lines if line.endswith("| é |")] == [
                f"| {n} | é |" for n in range(300)
            ]

    run(scene)


@pytest.mark.parametrize(("broadcast", "pings"), [("mention_only", False), ("allow", True)])
def test_an_answer_pings_everybody_only_where_that_is_allowed(
    tmp_path: Path, broadcast: str, pings: bool
) -> None:
    async def scene() -> None:
        async with chat(
            tmp_path, [Turn(text="hey @everyone and <!channel>")], f'broadcast = "{broadcast}"'
        ) as talk:
            await talk.pair("anna")
            talk.group("anna", "@palyra hi")
            await talk.answers("team")
            (post,) = talk.posted()
            assert calls_everyone(post.text) == pings
            assert post.out.ping_everyone == pings

    run(scene)


def test_a_send_that_fails_is_tried_again_then_is_a_dead_letter_and_can_be_replayed(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            await talk.pair("anna")
            tries = []

            def broken(out: OutgoingMessage) -> None:
                tries.append(out.key)
                raise SendFailed("the platform is broken")

            talk.platform.trouble = broken
            # Pauses between attempts are the clock's; here they are over at once.
            talk.daemon.clock.sleep = lambda ms: asyncio.sleep(0)  # type: ignore[method-assign]
            ready = talk.daemon.clock.now_ms
            talk.daemon.clock.now_ms = lambda: ready() + 3_600_000 * len(tries)  # type: ignore[method-assign]
            native = talk.direct("anna", "hello")
            assert await settled(talk, native) == "failed"
            assert (await talk.message(native)).reason == "undeliverable"
            assert len(tries) == 5
            assert len(set(tries)) == 1
            notices = (await talk.daemon.notices.listing(OWNER)).notices
            assert any("could not be delivered" in notice.text for notice in notices)
            (letter,) = await talk.daemon.channels.dead()
            talk.platform.trouble = lambda out: None
            await talk.daemon.channels.replay(OWNER, letter.reply_id)
            await talk.answers("dm-anna")
            await talk.is_(native, "answered")
            assert await talk.daemon.channels.dead() == []

    run(scene)


def test_a_rate_limit_and_a_lost_connection_are_no_failed_attempts(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            await talk.pair("anna")
            limits = iter(range(8))

            def limited(out: OutgoingMessage) -> None:
                if next(limits, None) is not None:
                    raise SendFailed("slow down", retry_after_ms=5)

            talk.platform.trouble = limited
            native = talk.direct("anna", "hello")
            assert await settled(talk, native) == "answered"
            (reply,) = (await talk.daemon.channels.trace(f"chat:{native}")).replies
            assert (reply.attempts, reply.doubtful) == (1, False)

    run(scene)


def test_an_answer_that_is_given_up_though_it_may_have_arrived_is_said_to(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            await talk.pair("anna")
            told = iter(
                [
                    SendFailed("the answer was lost", maybe_sent=True),
                    SendFailed("this conversation is gone", permanent=True),
                ]
            )

            def lost_then_gone(out: OutgoingMessage) -> None:
                raise next(told)

            talk.platform.trouble = lost_then_gone
            native = talk.direct("anna", "hello")
            assert await settled(talk, native) == "failed"
            (letter,) = await talk.daemon.channels.dead()
            # Also where the platform knows keys: that it was not told the second time says nothing
            # of the first.
            assert letter.doubtful
            assert letter.error == "this conversation is gone; it may have arrived all the same"
            # Sent after all, under the same key: there is one, whatever came before.
            talk.platform.trouble = lambda out: None
            await talk.daemon.channels.replay(OWNER, letter.reply_id)
            await talk.is_(native, "answered")
            (reply,) = (await talk.daemon.channels.trace(f"chat:{native}")).replies
            assert not reply.doubtful

    run(scene)


@pytest.mark.parametrize("idempotent", [True, False])
def test_an_answer_whose_fate_is_unknown_arrives_and_is_marked_where_it_may_have_arrived_twice(
    tmp_path: Path, idempotent: bool
) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            from msgspec.structs import replace

            talk.platform.abilities = replace(EVERYTHING, idempotent=idempotent)
            talk.platform.lose_answers = 1
            await talk.pair("anna")
            native = talk.direct("anna", "hello")
            assert await settled(talk, native) == "answered"
            (reply,) = (await talk.daemon.channels.trace(f"chat:{native}")).replies
            assert reply.doubtful == (not idempotent)
            assert len(talk.texts("dm-anna")) == (1 if idempotent else 2)

    run(scene)


def test_answers_wait_while_there_is_no_connection(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model) as talk:
            await talk.pair("anna")
            native = talk.direct("anna", "this is slow")
            await talk.when(lambda: model.streaming > 0)
            talk.platform.drop()
            model.slow.set()
            assert await settled(talk, native) == "answered"
            assert talk.platform.connections == 2

    run(scene)


def test_after_a_restart_what_was_unfinished_is_finished_and_answered_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(
            tmp_path,
            ScriptedModel(Script.of([Turn(text="late", hold="h")]), holds={"h": StreamPause()}),
        ) as talk:
            await talk.pair("anna", "bert")
            working = talk.direct("anna", "work on this")
            await talk.when(lambda: talk.daemon.runs.working > 0)
            talk.daemon.channels.intake.holding.quiet_ms = 60_000
            held = talk.direct("bert", "hold this")
            await talk.is_(held, "held")
        async with chat(tmp_path, [Turn(text="late")] * 4, fresh=False) as talk:
            assert [await settled(talk, native) for native in (working, held)] == [
                "answered",
                "answered",
            ]
            assert sorted(post.out.conversation for post in talk.posted()) == ["dm-anna", "dm-bert"]

    run(scene)


def test_a_run_that_fails_says_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, []) as talk:
            await talk.pair("anna")
            native = talk.direct("anna", "hello")
            (text,) = await talk.answers("dm-anna")
            assert text.startswith("I am not available")
            assert await settled(talk, native) == "failed"

    run(scene)


def test_a_reference_of_a_guest_is_plain_words(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model) as talk:
            (tmp_path / "work" / "secret.txt").write_text("the owner's secret plan")
            await talk.pair("anna")
            talk.direct("anna", "read @file:secret.txt please")
            (answer,) = await talk.answers("dm-anna")
            assert "@file:secret.txt" in answer
            assert "secret plan" not in str(model.requests)

    run(scene)


def test_commands_act_without_a_model(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model) as talk:
            await talk.pair("anna")
            await talk.link("boss")
            said: dict[str, str] = {}
            for number, words in enumerate(
                [
                    "status",
                    "whoami",
                    "help",
                    "usage",
                    "remember I like tea",
                    "model",
                    "model demo",
                    "reset",
                    "/new",
                ]
            ):
                talk.direct("anna", words)
                said[words] = (await talk.answers("dm-anna", number + 1))[-1]
            assert said["status"] == "Nothing of yours is under way."
            assert "channel:chat:anna" in said["whoami"]
            assert "approve ID" in said["help"]
            assert "0 calls" in said["usage"]
            assert said["remember I like tea"] in (
                "That is remembered.",
                "Noted. The owner reviews it first.",
            )
            # A guest learns nothing of models.
            assert said["model"] == said["model demo"]
            assert said["model"].startswith("Only users")
            assert "starts over" in said["reset"]
            assert "new conversation" in said["/new"]
            talk.direct("boss", "model")
            assert "1. scripted/one" in (await talk.answers("dm-boss"))[-1]
            talk.direct("boss", "model 2")
            assert "uses demo/" in (await talk.answers("dm-boss", 2))[-1]
            talk.direct("boss", "model 99")
            assert "`model` lists them" in (await talk.answers("dm-boss", 3))[-1]
            talk.direct("boss", "model demo")
            assert "uses demo/" in (await talk.answers("dm-boss", 4))[-1]
            for number, words in enumerate(["/retry", "!cancel"]):
                talk.direct("boss", words)
                assert (await talk.answers("dm-boss", 5 + number))[-1].startswith("Nothing")
            assert model.requests == []
            first = await talk.daemon.sessions.listing(
                "channel:chat:anna", archived=False, before="", limit=10
            )
            talk.direct("anna", "now we begin")
            await talk.answers("dm-anna", 10)
            second = await talk.daemon.sessions.listing(
                "channel:chat:anna", archived=False, before="", limit=10
            )
            assert len(second) == len(first) + 1

    run(scene)


def test_a_sentence_that_begins_like_a_command_is_none(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model) as talk:
            await talk.pair("anna")
            for number, words in enumerate(
                [
                    "new ideas for dinner?",
                    "stop by the shop",
                    "help me write",
                    "approve of this plan?",
                ]
            ):
                talk.direct("anna", words)
                assert words in (await talk.answers("dm-anna", number + 1))[-1]

    run(scene)


def test_an_approval_of_a_guest_goes_to_the_owner_and_only_they_can_answer(tmp_path: Path) -> None:
    async def scene() -> None:
        turns = [
            Turn(
                calls=(ScriptedCall(name="fs.write", arguments={"path": "a.txt", "content": "x"}),)
            ),
            Turn(text="done"),
        ]
        (tmp_path / "guests").mkdir()
        async with chat(tmp_path, turns, f'workspace = "{tmp_path}/guests"') as talk:
            await talk.pair("anna", "bert")
            await talk.link("boss")
            talk.direct("boss", "whoami")
            await talk.answers("dm-boss")
            native = talk.direct("anna", "do it")
            await talk.until(
                lambda now: len(now.posted("dm-boss")) >= 2 and len(now.posted("dm-anna")) >= 1
            )
            question = talk.posted("dm-boss")[1]
            yes = question.out.buttons[0].value
            assert "needs an approval that you cannot give" in talk.texts("dm-anna")[0]
            for name in ("anna", "bert"):
                before = len(talk.posted(f"dm-{name}"))
                talk.say(yes, name, conversation=f"dm-{name}", is_direct=True, pressed=True)
                assert "may not answer" in (await talk.answers(f"dm-{name}", before + 1))[-1]
            talk.say(yes, "boss", conversation="dm-boss", is_direct=True, pressed=True)
            assert await settled(talk, native) == "answered"
            assert talk.texts("dm-anna")[-1] == "done"
            await talk.until(lambda now: question.edits == 1)
            assert "Approved by user:owner" in question.text
            assert (tmp_path / "guests" / "a.txt").read_text() == "x"

    run(scene)


def test_a_channel_that_is_refused_is_shown_as_failed_and_the_owner_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            await talk.when(
                lambda: talk.daemon.channels.connections.status("chat").state == "connected"
            )
            talk.platform.refuses = "the token was revoked: make another"
            talk.platform.drop()
            await talk.when(
                lambda: talk.daemon.channels.connections.status("chat").state == "failed"
            )
            status = await talk.daemon.channels.status("chat")
            assert status.connection.detail == "the token was revoked: make another"

            async def told() -> bool:
                return any(
                    "does not work" in each.text
                    for each in (await talk.daemon.notices.listing(OWNER)).notices
                )

            await talk.when(told)
            talk.platform.refuses = ""
            await talk.daemon.channels.reconnect(OWNER, "chat")
            await talk.when(
                lambda: talk.daemon.channels.connections.status("chat").state == "connected"
            )

    run(scene)


def test_the_wait_for_quiet_is_a_second_and_a_half_and_never_more_than_six(tmp_path: Path) -> None:
    async def scene() -> None:
        model = Echo()
        async with chat(tmp_path, model, quiet_ms=1_500) as talk:
            await talk.pair("anna")
            clock = held_clock(talk)
            for number in range(5):
                await talk.seen(talk.direct("anna", f"part {number}"))
                clock.advance(1_400 if number < 4 else 399)
            assert model.requests == []
            clock.advance(1)
            (answer,) = await talk.answers("dm-anna")
            assert "part 0\npart 1\npart 2\npart 3\npart 4" in answer
            await talk.seen(talk.direct("anna", "later"))
            clock.advance(1_499)
            assert len(model.requests) == 1
            clock.advance(1)
            assert "later" in (await talk.answers("dm-anna", 2))[-1]

    run(scene)


def test_a_message_of_the_daemons_own_accord_goes_out_with_its_file(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            at = await session(talk.daemon)
            keep = partial(
                artifacts.keep_artifact,
                session_id=at.session_id,
                body=b"data",
                media_type="text/plain",
            )
            kept = await talk.daemon.db.write(keep)
            file = SentFile(at.session_id, kept, "a.txt", "text/plain")
            reply = await talk.daemon.channels.say(
                OWNER, ChatPlace("chat", "dm-boss"), "here it is", files=(file,)
            )
            await talk.answers("dm-boss")
            (post,) = talk.posted("dm-boss")
            assert [(each.name, each.data) for each in post.out.files] == [("a.txt", b"data")]
            assert post.out.key == f"{reply}-0"

    run(scene)


def test_after_a_restart_what_was_held_goes_before_what_was_only_stored(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, Echo(), quiet_ms=60_000) as talk:
            await talk.pair("anna")
            held = [talk.direct("anna", f"older {number}") for number in range(3)]
            for native in held:
                await talk.is_(native, "held")
            newer = Inbound(
                native_id="newer",
                conversation="dm-anna",
                sender=Sender("anna"),
                text="newer",
                is_direct=True,
            )
            # As if the daemon had died right after storing it.
            take = partial(
                messages.take,
                connector="chat",
                message_id=talk.daemon.clock.new_id(),
                principal="channel:chat:anna",
            )
            await talk.daemon.db.write(partial(take, inbound=newer))
        async with chat(tmp_path, Echo(), fresh=False) as talk:
            for native in (*held, "newer"):
                assert await settled(talk, native) == "answered"
            said = "\n".join(talk.texts("dm-anna"))
            assert [
                said.index(word) for word in ("older 0", "older 1", "older 2", "newer")
            ] == sorted(said.index(word) for word in ("older 0", "older 1", "older 2", "newer"))

    run(scene)


def test_a_message_that_is_stored_goes_its_way_though_the_connection_breaks_in_that_moment(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with chat(tmp_path, SAY) as talk:
            await talk.pair("anna")
            message = Inbound(
                native_id="cut",
                conversation="dm-anna",
                sender=Sender("anna"),
                text="hello",
                is_direct=True,
            )
            taking = asyncio.create_task(talk.daemon.channels.intake.take("chat", message))
            await asyncio.sleep(0)
            taking.cancel()
            assert await settled(talk, "cut") == "answered"

    run(scene)


@pytest.mark.parametrize("state", ["held", "queued"])
def test_a_message_that_a_defect_keeps_from_the_agent_is_told_and_holds_nobody_up(
    tmp_path: Path, state: str
) -> None:
    """Wherever on its way: the store refuses one message, for a reason that nobody foresaw."""
    refused = f"""CREATE TRIGGER defect BEFORE UPDATE ON channel_messages
        WHEN NEW.native_id = 'bad' AND NEW.state = '{state}' BEGIN SELECT RAISE(ABORT, 'a defect'); END"""

    async def scene() -> None:
        async with chat(tmp_path, Echo(), "concurrency = 1") as talk:
            await talk.pair("anna", "bert")
            await talk.daemon.db.write(lambda tx: tx.run(refused))
            talk.direct("anna", "first", native_id="bad")
            assert await settled(talk, "bad") == "failed"
            assert "something went wrong here" in (await talk.answers("dm-anna"))[0]
            assert await settled(talk, talk.direct("anna", "second")) == "answered"
            assert await settled(talk, talk.direct("bert", "third")) == "answered"

    run(scene)


def test_a_command_that_a_defect_keeps_from_being_done_is_told(tmp_path: Path) -> None:
    refused = """CREATE TRIGGER defect BEFORE INSERT ON channel_outbox WHEN NEW.kind = 'command'
        BEGIN SELECT RAISE(ABORT, 'a defect'); END"""

    async def scene() -> None:
        async with chat(tmp_path, Echo()) as talk:
            await talk.pair("anna")
            await talk.daemon.db.write(lambda tx: tx.run(refused))
            assert await settled(talk, talk.direct("anna", "/help")) == "failed"
            assert "something went wrong here" in (await talk.answers("dm-anna"))[0]

    run(scene)


def test_an_answer_that_a_defect_keeps_back_costs_no_place_and_is_given_after_a_restart(
    tmp_path: Path,
) -> None:
    refused = """CREATE TRIGGER defect BEFORE INSERT ON channel_outbox
        WHEN NEW.kind = 'answer' AND NEW.conversation = 'dm-anna' BEGIN SELECT RAISE(ABORT, 'a defect'); END"""
    one_place = "concurrency = 1"

    async def scene() -> None:
        async with chat(tmp_path, Echo(), one_place) as talk:
            await talk.pair("anna", "bert")
            await talk.daemon.db.write(lambda tx: tx.run(refused))
            first = talk.direct("anna", "first")
            await talk.ends((await talk.is_(first, "queued")).run_id, "done")
            assert await settled(talk, talk.direct("bert", "second")) == "answered"
            await talk.daemon.db.write(lambda tx: tx.run("DROP TRIGGER defect"))
        async with chat(tmp_path, Echo(), one_place, fresh=False) as talk:
            assert await settled(talk, first) == "answered"
            assert len(talk.texts("dm-anna")) == 1

    run(scene)
