"""What people in a chat are told: guests nothing of the inside, approvers what was understood,
strangers how it stands.
"""

from functools import partial
from pathlib import Path

import pytest

from palyra.core.errors import Forbidden, InvalidInput
from palyra.core.ids import OWNER
from palyra.features.channels import texts
from palyra.features.channels.commands import understood
from palyra.features.channels.email.parse import Mail, MailParser
from palyra.features.channels.model import Rules, is_stop
from palyra.features.vault.rules import NewSecret
from palyra.models.scripted import ScriptedCall, ScriptedFailure, Turn
from palyra.store import approvals
from tests.chatting import chat
from tests.e2e.channels.test_messages import run, settled
from tests.inprocess import IMPATIENT

SERVER = "cannot connect to the model server at 10.1.2.3:11434 (connection refused)"
WRITES = [
    Turn(calls=(ScriptedCall(name="fs.write", arguments={"path": "a.txt", "content": text}),))
    for text in ("one", "two")
]


@pytest.mark.parametrize(
    ("who", "told"), [("anna", texts.NOT_AVAILABLE), ("boss", "That did not work: ")]
)
def test_a_failed_run_ends_as_failed_and_only_a_user_hears_what_failed(
    tmp_path: Path, who: str, told: str
) -> None:
    async def scene() -> None:
        async with chat(
            tmp_path, [Turn(fail=ScriptedFailure(failure="auth", message=SERVER))], more=IMPATIENT
        ) as talk:
            await talk.pair("anna")
            await talk.link("boss")
            native = talk.direct(who, "hello")
            (text,) = await talk.answers(f"dm-{who}")
            assert text.startswith(told)
            assert ("10.1.2.3" in text) == (who == "boss")
            message = await talk.is_(native, "answered", "refused", "failed")
            assert (message.state, message.reason) == ("failed", "run_failed")

    run(scene)


def test_in_a_group_nobody_hears_what_failed_inside(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(
            tmp_path, [Turn(fail=ScriptedFailure(failure="auth", message=SERVER))], more=IMPATIENT
        ) as talk:
            await talk.link("boss")
            talk.group("boss", "@palyra hello")
            assert await talk.answers("team") == [texts.NOT_AVAILABLE]

    run(scene)


def test_a_stranger_who_writes_again_is_told_how_it_stands(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, []) as talk:
            for number in range(6):
                native = talk.direct("eve", f"hello {number}")
                assert await settled(talk, native) == "refused"
            first, second, *more = await talk.answers("dm-eve", 2)
            assert "Your code is" in first
            assert "The code that I sent you works for" in second
            # Who goes on and on is not answered each time.
            assert more == []

    run(scene)


def test_an_approval_in_a_chat_says_what_was_understood_and_does_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with chat(tmp_path, [*WRITES, Turn(text="done")]) as talk:
            await talk.link("boss")
            native = talk.direct("boss", "do it")
            await talk.until(lambda now: len(now.posted("dm-boss")) >= 1)
            question = talk.posted("dm-boss")[0]
            assert [each.label for each in question.out.buttons] == [
                "Approve",
                "For this session",
                "For 1 hour",
                "Deny",
            ]
            name = question.out.buttons[0].value.split()[1]
            talk.direct("boss", f"approve {name} forever and ever")
            assert "did not understand" in (await talk.answers("dm-boss", 2))[-1]
            talk.direct("boss", f"approve {name} always")
            assert "console" in (await talk.answers("dm-boss", 3))[-1]
            assert (
                await talk.daemon.db.read(partial(approvals.find, approval_id=name))
            ).decision == ""  # type: ignore[union-attr]
            talk.direct("boss", f"approve {name} session")
            # The file is written a second time without a question.
            assert await settled(talk, native) == "answered"
            said = " ".join(talk.texts("dm-boss"))
            assert "is approved, and fs.write" in said
            assert "in this session without asking" in said
            (grant,) = await talk.daemon.db.read(partial(approvals.grants_of, principal=OWNER))
            assert grant.session_id
        assert (tmp_path / "work" / "a.txt").read_text() == "two"

    run(scene)


@pytest.mark.parametrize(("word", "there"), [("approve", True), ("deny", False)])
def test_calls_that_were_asked_together_are_answered_by_one_word(
    tmp_path: Path, word: str, there: bool
) -> None:
    both = Turn(
        calls=tuple(
            ScriptedCall(name="fs.write", arguments={"path": name, "content": "x"})
            for name in ("a.txt", "b.txt")
        )
    )

    async def scene() -> None:
        async with chat(tmp_path, [both, Turn(text="done")]) as talk:
            await talk.link("boss")
            native = talk.direct("boss", "do it")
            await talk.until(lambda now: len(now.posted("dm-boss")) >= 2)
            asked = [each.out.text for each in talk.posted("dm-boss")]
            (line,) = [text for text in asked if "2 calls are asked together" in text]
            name = line.partition("`approve ")[2].split()[0]
            talk.direct("boss", f"{word} {name} all")
            assert await settled(talk, native) == "answered"
        for each in ("a.txt", "b.txt"):
            assert (tmp_path / "work" / each).exists() == there

    run(scene)


@pytest.mark.parametrize(
    ("said", "scope", "for_ms"),
    [
        ("", "once", 0),
        ("once", "once", 0),
        ("session", "session", 0),
        ("for this session", "session", 0),
        ("2h", "timed", 7_200_000),
        ("for 30 minutes", "timed", 1_800_000),
        ("1 day", "timed", 86_400_000),
    ],
)
def test_a_width_is_understood_as_it_is_said(said: str, scope: str, for_ms: int) -> None:
    answer = understood(said)
    assert (answer.decision, answer.scope, answer.for_ms) == ("allow", scope, for_ms)


@pytest.mark.parametrize(
    "said",
    ["sesion", "always", "no", "not yet", "2 fortnights", "session and deny the rest", "h", "for"],
)
def test_what_is_not_understood_decides_nothing(said: str) -> None:
    with pytest.raises(InvalidInput):
        understood(said)


@pytest.mark.parametrize(
    "subject", ["", "Palyra", "URGENT: please read", "Re: yesterday", "stop that", "STOP"]
)
@pytest.mark.parametrize(
    "body", ["STOP", "stop.", "Stop!\n\n-- \nAnna", "STOP\n\nOn Monday Palyra wrote:\n> hello"]
)
def test_stop_in_a_mail_stops_whatever_the_subject_is(subject: str, body: str) -> None:
    raw = f"From: anna@x.example\nTo: palyra@example.org\nSubject: {subject}\nMessage-ID: <1@x>\n\n{body}\n"
    read = (
        MailParser("palyra@example.org", "", str)
        .read(Mail([(b"", raw.replace("\n", "\r\n").encode())]))
        .message
    )
    assert read is not None
    assert is_stop(read, Rules())
    assert read.whole.endswith(read.text)


@pytest.mark.parametrize(
    ("bound", "good"),
    [(("imap.example.org", "smtp.example.org"), True), (("imap.example.org",), False)],
)
def test_a_secret_bound_to_hosts_works_for_a_channel_on_those_hosts(
    tmp_path: Path, bound: tuple[str, ...], good: bool
) -> None:
    async def scene() -> None:
        async with chat(tmp_path, []) as talk:
            secret = NewSecret(name="mail", value="correct horse battery staple", hosts=bound)
            await talk.daemon.vault.put(OWNER, secret)
            look_up = talk.daemon.channels._look_up
            servers = ("imap.example.org", "smtp.example.org")
            if good:
                assert (
                    await look_up("mail", "vault:mail", servers) == "correct horse battery staple"
                )
            else:
                with pytest.raises(Forbidden):
                    await look_up("mail", "vault:mail", servers)

    run(scene)
