"""Putting an approval to a person on a plain terminal, outside a chat. Reads the terminal itself:
standard input may be a pipe.
"""

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Callable
from io import RawIOBase
from typing import Any

from palyra.cli import approval_prompt
from palyra.cli.approval_prompt import (
    ApprovalDecision,
    ApprovalPrompt,
    EditRequested,
    Leave,
    Say,
    ViewRequested,
    subject_words,
)
from palyra.cli.exit_codes import InterruptedCommand
from palyra.cli.render import entries
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client import Client
from palyra.client.types.approvals import Approval
from palyra.core.errors import PalyraError
from palyra.core.events import ApprovalRequested
from palyra.core.tools import Subject

# Lines of the terminal that a card needs besides what would run.
_AROUND = 8
_LEAST_SHOWN = 8
# How long a card is on the screen before keys count as its answer.
READING_S = 0.3


def shown_lines(rows: int) -> int:
    """Return how many lines of what would run are shown with a card, so that all of it is on the
    screen.
    """
    return max(_LEAST_SHOWN, rows - _AROUND)


def answer_at_terminal(state: CliState, session_id: str, request: ApprovalRequested) -> Approval:
    """Ask until there is an answer. Leaving it pending is an Interrupted."""

    def style(text: str, *styles: str) -> str:
        return state.out.style(text, *styles, color=state.out.error_color)

    def write(line: str) -> None:
        sys.stderr.write(line + "\n")

    with open("/dev/tty", "rb", buffering=0) as terminal:
        size = os.get_terminal_size(terminal.fileno())
        width, most = size.columns, shown_lines(size.lines)
        deciding = ApprovalPrompt(request, hidden=entries.hides(request.preview, most))
        for line in (
            *entries.approval_lines(style, request, width=width),
            *entries.preview_lines(style, request.preview, most=most),
        ):
            write(line)
        sys.stderr.flush()
        # What was typed before a person can have read the card is no answer to it.
        time.sleep(READING_S)
        termios.tcflush(terminal.fileno(), termios.TCIFLUSH)
        while True:
            try:
                sys.stderr.write(style(deciding.prompt, "bold", "magenta"))
                sys.stderr.flush()
                line = _read_answer(terminal, deciding.keys)
            except KeyboardInterrupt:
                # What is said next begins a line, not behind the question.
                sys.stderr.write("\n")
                raise
            step = deciding.enter(line) if line else Leave()
            if isinstance(step, ViewRequested):
                step = viewed(state.api, deciding, style, write, width)
            if isinstance(step, EditRequested):
                try:
                    proposed = approval_prompt.proposed(state.api, session_id, request.call_id)
                    changed = approval_prompt.edit(proposed, state.env)
                    step = deciding.edited(changed, subjects_of(state.api, request, changed))
                    for shown in entries.edited_lines(style, proposed, changed):
                        write(shown)
                except PalyraError as error:
                    step = Say(error.message)
            match step:
                case ApprovalDecision():
                    return send(state.api, request.approval_id, step)
                case Say(text=text):
                    said = entries.wrapped(style, clean(text), width) if text else []
                    sys.stderr.write("".join(f"{line}\n" for line in said))
                case Leave():
                    raise InterruptedCommand(
                        "the approval stays pending: answer it with `palyra approvals allow"
                        f" {request.approval_id}`"
                    )


def subjects_of(
    api: Client, request: ApprovalRequested, arguments: dict[str, Any]
) -> tuple[Subject, ...]:
    """Return what a wider yes to edited arguments can cover. Raises if they are not valid."""
    return api.preview_approval(request.approval_id, arguments=arguments).subjects


def _read_answer(terminal: RawIOBase, keys: frozenset[str]) -> str:
    """Read a key that is an answer by itself, or a line. Nothing is the end of the terminal."""
    if not keys:
        return _read_line(terminal)
    before = termios.tcgetattr(terminal.fileno())
    try:
        # Keys come one by one; Ctrl-C stays a signal.
        tty.setcbreak(terminal.fileno(), termios.TCSADRAIN)
        first = _read_line(terminal)
        typed = first.rstrip("\n")
        sys.stderr.write(typed)
        if typed in keys or first.endswith("\n") or not first:
            sys.stderr.write("\n")
            return first
        if typed == "\x04":
            return ""
    finally:
        termios.tcsetattr(terminal.fileno(), termios.TCSADRAIN, before)
    # More than a key: the rest of the line is edited as usual.
    return typed + (_read_line(terminal) or "\n")


def _read_line(terminal: RawIOBase) -> str:
    """Read what the terminal gives: a line, or keys if they come one by one. A Ctrl-C that arrives
    just before the read begins must not wait for its end: the signal writes to a pipe, and the pipe
    is waited for beside the terminal.
    """
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    try:
        ready: list[int] = []
        while terminal.fileno() not in ready:
            ready = select.select([terminal.fileno(), woken], [], [])[0]
            if woken in ready:
                # Handlers run before the next instruction; one that raises ends the wait.
                os.read(woken, 64)
        return os.read(terminal.fileno(), 4096).decode("utf-8", "replace")
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(wake)


def send(api: Client, approval_id: str, step: ApprovalDecision) -> Approval:
    return api.answer(
        approval_id,
        decision=step.decision,
        scope=step.scope,
        subject=step.subject,
        for_ms=step.for_ms,
        arguments=step.arguments,
        reason=step.reason,
        seen=step.seen,
    )


def send_together(api: Client, request: ApprovalRequested, step: ApprovalDecision) -> str:
    """Answer all calls that were asked about together; return what could not be answered so."""
    answered = api.answer_group(
        request.approval_id,
        decision="allow" if step.decision == "allow" else "deny",
        seen={request.approval_id: step.seen} if step.seen else {},
    )
    return "; ".join(each.message for each in answered.problems)


def viewed(
    api: Client,
    deciding: ApprovalPrompt,
    style: entries.Style,
    write: Callable[[str], object],
    width: int,
) -> Say:
    """Show the details and all of what would run, and let it be answered if that was all."""
    try:
        shown = api.preview_approval(deciding.request.approval_id).preview
    except PalyraError as error:
        return Say(error.message)
    for line in (
        *entries.approval_lines(style, deciding.request, width=width, details=True),
        *entries.preview_lines(style, shown, whole=True),
    ):
        write(line)
    for number, subject in enumerate(deciding.request.subjects, 1):
        write(style(f"  a wider approval can cover {number}. {subject_words(subject)}", "dim"))
    if shown.length:
        return Say(
            "this is too long to be shown whole anywhere: deny it, and ask for it in smaller parts"
        )
    deciding.viewed(shown.digest)
    return Say(f"that is all of it ({len(shown.body):,} characters)")
