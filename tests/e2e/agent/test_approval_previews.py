"""What is approved is shown: whole or not approvable there, every character visible, and an edit as
it was edited.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from palyra.agent.approval_steps import Answer
from palyra.agent.approvals import ApprovalDraft
from palyra.core.errors import Conflict, Forbidden
from palyra.core.events import ApprovalRequested, ToolFinished, decode
from palyra.core.ids import OWNER
from palyra.core.tools import Preview
from palyra.features.channels import texts
from palyra.models.scripted import ScriptedCall, Turn
from palyra.serve.wiring.daemon import Daemon
from palyra.tools import previews
from tests.inprocess import daemon, finished, say, session, until

LONG = "".join(f"line {number} {'x' * 80}\n" for number in range(2_000))


@asynccontextmanager
async def asked(
    folder: Path, tool: str, arguments: dict[str, Any]
) -> AsyncIterator[tuple[Daemon, Any, ApprovalRequested]]:
    """A daemon, a run of it, and what the run asks."""
    call = ScriptedCall(name=tool, arguments=arguments)
    async with daemon(folder, [Turn(calls=(call,)), Turn(text="done")]) as opened:
        where = await session(opened)
        run = await say(opened, where, "go")
        request = decode((await until(opened, where.session_id, "approval.requested")).event)
        assert isinstance(request, ApprovalRequested)
        yield opened, run, request


def test_what_is_shown_in_part_is_approved_only_by_who_has_seen_all_of_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with asked(tmp_path, "fs.write", {"path": "long.txt", "content": LONG}) as (
            opened,
            run,
            request,
        ):
            shown, answers = request.preview, opened.answers
            assert len(shown.body) <= previews.SHOWN + 200
            assert shown.length > len(LONG)
            assert "line 0 " in shown.body
            assert "line 1999 " in shown.body
            assert "characters are not shown here" in shown.body
            for given in (
                Answer(decision="allow"),
                Answer(decision="allow", seen="0" * 64),
                Answer(decision="allow", scope="session"),
            ):
                with pytest.raises(Conflict, match="only a part"):
                    await answers.answer(OWNER, request.approval_id, given, "test")
            whole = (await answers.preview(OWNER, request.approval_id, ApprovalDraft())).preview
            assert (whole.length, whole.digest) == (0, shown.digest)
            assert all(f"+line {number} " in whole.body for number in range(2_000))
            await answers.answer(
                OWNER, request.approval_id, Answer(decision="allow", seen=whole.digest), "test"
            )
            assert (await finished(opened, run)).kind == "run.completed"
            ended = decode((await until(opened, run.session_id, "tool.finished")).event)
            assert isinstance(ended, ToolFinished)
            assert ended.attestation is not None
            assert ended.attestation.input_sha256 == shown.digest
        assert (tmp_path / "work" / "long.txt").read_text() == LONG

    asyncio.run(work())


def test_a_large_request_is_shown_from_its_first_byte_to_its_last(tmp_path: Path) -> None:
    async def work() -> None:
        body = "begin " + "a" * 3_000 + " send all of this to the stranger " + "b" * 3_000 + " end"
        async with asked(tmp_path, "http.post", {"url": "https://example.org/", "body": body}) as (
            _,
            _,
            request,
        ):
            assert request.preview.body.endswith(body)
            assert request.preview.length == 0
            text, buttons = texts.approval(request, "Anna", buttons=True)
            assert [each.label for each in buttons] == ["Deny"]
            assert "cannot be approved here" in text
            assert request.preview.digest[:16] in text

    asyncio.run(work())


def test_an_edit_is_shown_before_and_after_as_what_runs(tmp_path: Path) -> None:
    async def work() -> None:
        async with asked(tmp_path, "fs.write", {"path": "a.txt", "content": "proposed\n"}) as (
            opened,
            run,
            request,
        ):
            edited = {"path": "b.txt", "content": "edited\n"}
            draft = await opened.answers.preview(
                OWNER, request.approval_id, ApprovalDraft(arguments=edited)
            )
            assert draft.verdict == "ask"
            assert ("+edited" in draft.preview.body, "proposed" in draft.preview.body) == (
                True,
                False,
            )
            hidden = ApprovalDraft(arguments={"path": ".env", "content": "x"})
            with pytest.raises(Forbidden):
                await opened.answers.preview(OWNER, request.approval_id, hidden)
            given = Answer(decision="allow", arguments=edited)
            settled = await opened.answers.answer(OWNER, request.approval_id, given, "test")
            assert settled.resolution is not None
            assert settled.resolution.preview == draft.preview
            await finished(opened, run)
            with pytest.raises(Conflict):
                await opened.answers.preview(OWNER, request.approval_id, ApprovalDraft())
        assert (tmp_path / "work" / "b.txt").read_text() == "edited\n"

    asyncio.run(work())


@pytest.mark.parametrize("first", ["allow", "deny"])
def test_of_two_answers_at_once_the_one_that_came_first_wins(tmp_path: Path, first: str) -> None:
    async def work() -> None:
        async with asked(tmp_path, "fs.write", {"path": "a.txt", "content": "x\n" * 50_000}) as (
            opened,
            run,
            request,
        ):
            edited = {"path": "a.txt", "content": "y\n" * 50_000}
            yes, no = Answer(decision="allow", arguments=edited), Answer(decision="deny")
            given = [yes, no] if first == "allow" else [no, yes]
            answers = [
                opened.answers.answer(OWNER, request.approval_id, each, "test") for each in given
            ]
            one, other = await asyncio.gather(*answers, return_exceptions=True)
            assert not isinstance(one, BaseException)
            assert one.decision == first
            assert isinstance(other, Conflict)
            await finished(opened, run)

    asyncio.run(work())


@pytest.mark.parametrize(
    "char",
    ["\x1b", "\x07", "\u202e", "\u2066", "\u200b", "\u00ad", "\U000e0041", "\u2028", "\x85", "\r"],
)
def test_no_character_hides_in_a_preview(tmp_path: Path, char: str) -> None:
    async def work() -> None:
        command = f"echo safe {char} ; echo other"
        async with asked(tmp_path, "shell.run", {"command": command}) as (_, _, request):
            text, _ = texts.approval(request, f"An{char}na", buttons=False)
            for shown in (request.preview.title, request.preview.body, text):
                assert char not in shown.replace("\n", "")
                assert "\\" in shown

    asyncio.run(work())


def test_a_chat_shows_all_that_it_lets_people_approve() -> None:
    short, long = (
        Preview("diff", "t", "+x\n" * 300),
        Preview("diff", "t", "+y\n" * 600, digest="ab" * 32),
    )
    assert texts.shown(short) == (short.body, True)
    text, whole = texts.shown(long)
    assert not whole
    assert (
        text.startswith("+y\n"),
        text.endswith("+y\n"),
        "1,800 characters" in text,
        "abababab" in text,
    ) == (True,) * 4
    assert texts.shown(Preview("diff", "t", "+x", length=5))[1] is False


def test_a_cut_never_shows_half_a_secret() -> None:
    secret = "hunter2-" * 8
    seen: list[int] = []

    def redact(text: str) -> str:
        seen.append(len(text))
        return text.replace(secret, "[secret]")

    for at in range(0, 200, 7):
        body = "x" * (750 - at) + secret + "y" * 5_000
        shown = previews.finished(Preview("text", "t", body), redact, "", 1_000)
        assert "hunter2" not in shown.body
        assert shown.length == len(body)
    assert max(seen) > 1_000
