"""Putting an approval to a person on a plain terminal, outside a chat. Reads the terminal itself:
standard input may be a pipe.
"""

import os
import sys
from collections.abc import Callable

from palyra.cli import edit_arguments
from palyra.cli.approval_prompt import (
    ApprovalDecision,
    ApprovalPrompt,
    EditRequested,
    Leave,
    Say,
    ViewRequested,
)
from palyra.cli.exit_codes import InterruptedCommand
from palyra.cli.render import entries
from palyra.cli.safe_text import clean
from palyra.cli.state import CliState
from palyra.client import Client
from palyra.client.types.approvals import Approval
from palyra.core.errors import PalyraError
from palyra.core.events import ApprovalRequested


def answer_at_terminal(state: CliState, session_id: str, request: ApprovalRequested) -> Approval:
    """Ask until there is an answer. Leaving it pending is an Interrupted."""

    def style(text: str, *styles: str) -> str:
        return state.out.style(text, *styles, color=state.out.error_color)

    deciding = ApprovalPrompt(request, hidden=entries.hides(request.preview))
    with open("/dev/tty", encoding="utf-8", errors="replace") as terminal:
        width = os.get_terminal_size(terminal.fileno()).columns
        for line in entries.approval_lines(style, request, width=width):
            sys.stderr.write(line + "\n")
        while True:
            try:
                sys.stderr.write(style(deciding.prompt, "bold", "magenta"))
                sys.stderr.flush()
                line = terminal.readline()
            except KeyboardInterrupt:
                # What is said next begins a line, not behind the question.
                sys.stderr.write("\n")
                raise
            step = deciding.enter(line) if line else Leave()
            if isinstance(step, ViewRequested):
                step = viewed(
                    state.api, deciding, style, lambda line: sys.stderr.write(line + "\n")
                )
            if isinstance(step, EditRequested):
                try:
                    proposed = edit_arguments.proposed(state.api, session_id, request.call_id)
                    changed = edit_arguments.edit(proposed, state.env)
                    step = deciding.edited(changed)
                    for shown in entries.edited_lines(style, proposed, changed):
                        sys.stderr.write(shown + "\n")
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


def viewed(
    api: Client, deciding: ApprovalPrompt, style: entries.Style, write: Callable[[str], object]
) -> Say:
    """Show all of what would run, and let it be answered if that was all."""
    try:
        shown = api.preview_approval(deciding.request.approval_id).preview
    except PalyraError as error:
        return Say(error.message)
    for line in entries.preview_lines(style, shown, whole=True):
        write(line)
    if shown.length:
        return Say(
            "this is too long to be shown whole anywhere: deny it, and ask for it in smaller parts"
        )
    deciding.viewed(shown.digest)
    return Say(f"that is all of it ({len(shown.body):,} characters)")
