"""Approvals in a chat: two lines and what would run, answered by a key.

A card is answered only by keys that were typed after a person can have read it, so none is shown
while there is something in the line, and keys count a moment after it appeared.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from palyra.cli import approval_prompt
from palyra.cli.approval_prompt import (
    MARK,
    ApprovalDecision,
    ApprovalPrompt,
    EditRequested,
    Leave,
    Say,
    ViewRequested,
)
from palyra.cli.render import entries
from palyra.cli.safe_text import clean, one_line, width_of
from palyra.cli.terminal_approval import (
    READING_S,
    send,
    send_together,
    shown_lines,
    subjects_of,
    viewed,
)
from palyra.core.errors import PalyraError
from palyra.core.events import ApprovalRequested

if TYPE_CHECKING:
    from palyra.cli.chat.loop import Chat


_LONGEST_TITLE = 100


class ApprovalCards:
    """The approvals of a chat, one at a time. `typed` are the commands that the person typed, by
    the run that runs them.
    """

    def __init__(self, chat: "Chat", env: Mapping[str, str]) -> None:
        self.deciding: ApprovalPrompt | None = None
        self.typed: dict[str, str] = {}
        self._chat = chat
        self._env = env
        # A card that is on the screen, but not for long enough to be answered.
        self._card: ApprovalPrompt | None = None
        self._left: set[str] = set()

    def clear(self) -> None:
        """Forget a session, for another one."""
        self.ask_again()
        self.typed.clear()

    def ask_again(self) -> None:
        """Put approvals that were left pending back on the screen."""
        self._left.clear()
        self.deciding = self._card = None

    @property
    def prompt(self) -> str:
        """The prompt, if there is room for an answer behind it."""
        whole = self.deciding.prompt if self.deciding else ""
        return whole if self._fits(whole) else entries.SAYS

    def _fits(self, prompt: str) -> bool:
        return width_of(prompt) < self._chat.terminal.out.width - 10

    def enter(self, text: str) -> None:
        """Take a line as the answer."""
        assert self.deciding is not None
        self._chat.screen.lines(
            entries.wrapped(
                self._style, self.prompt + clean(text), self._chat.terminal.out.width, "dim"
            )
        )
        self._decide(self.deciding, text)

    def ask(self) -> None:
        """Put the next pending approval to the person, or take back one that was answered
        elsewhere.
        """
        pending = self._chat.screen.pending
        if self.deciding and self.deciding.request.approval_id not in pending:
            self.deciding = None
        if self._card and self._card.request.approval_id not in pending:
            self._card = None
        if self.deciding or self._card or self._chat.terminal.input.in_use:
            return
        request = next(
            (each for each in pending.values() if each.approval_id not in self._left), None
        )
        if request is None or self._typed_it(request):
            return
        most = shown_lines(self._chat.terminal.rows)
        others = [
            each
            for each in pending.values()
            if request.group
            and each.group == request.group
            and each is not request
            and each.approval_id not in self._left
        ]
        # A yes to all of them needs all of them on the screen.
        share = most // (len(others) + 1)
        whole = not any(entries.hides(each.preview, share) for each in (request, *others))
        self._chat.terminal.gap()
        lines = [
            *entries.approval_lines(self._style, request, width=self._chat.terminal.out.width),
            *entries.preview_lines(self._style, request.preview, most=most),
        ]
        for number, each in enumerate(others, 2):
            lines.append(
                f"  {number}. {one_line(each.tool)}: {one_line(each.preview.title, _LONGEST_TITLE)}"
            )
            if whole:
                lines += entries.preview_lines(self._style, each.preview, most=share)
        self._chat.screen.lines(lines)
        self._card = ApprovalPrompt(
            request,
            hidden=entries.hides(request.preview, most),
            others=others if whole else (),
        )
        self._chat.terminal.call_later(READING_S, self._arm)

    def _arm(self) -> None:
        """Let the card be answered, now that a person can have read it and is not writing."""
        if self._card is None or self.deciding:
            return
        if self._chat.terminal.input.in_use:
            self._chat.terminal.call_later(READING_S, self._arm)
            return
        self.deciding, self._card = self._card, None
        if not self._fits(self.deciding.prompt):
            self._chat.screen.lines(
                entries.wrapped(
                    self._style,
                    self.deciding.prompt.removesuffix(MARK),
                    self._chat.terminal.out.width,
                )
            )
        self._chat.terminal.forget_typed()
        self._chat.settle()

    def take_key(self) -> None:
        """Take one key as the answer to an approval, where it is one."""
        line = self._chat.terminal.input
        if self.deciding and line.text in self.deciding.keys:
            key = line.text
            line.clear()
            self._chat.entered(key)

    def _typed_it(self, request: ApprovalRequested) -> bool:
        """Answer for a person who typed this very command themselves."""
        command = self.typed.get(self._chat.screen.asked_by.get(request.approval_id, ""))
        call = self._chat.screen.calls.get(request.call_id)
        if not command or request.about != "tool" or request.preview.length or call is None:
            return False
        if (call.tool, call.arguments) != ("shell.run", {"command": command}):
            return False
        self._left.add(request.approval_id)
        with self._chat.told():
            send(self._chat.api, request.approval_id, ApprovalDecision(decision="allow"))
        return True

    def _decide(self, deciding: ApprovalPrompt, text: str) -> None:
        step = deciding.enter(text)
        if isinstance(step, ViewRequested):
            step = viewed(
                self._chat.api,
                deciding,
                self._style,
                lambda line: self._chat.screen.lines([line]),
                self._chat.terminal.out.width,
            )
        if isinstance(step, EditRequested):
            try:
                changed = self._edited(deciding)
                step = deciding.edited(
                    changed, subjects_of(self._chat.api, deciding.request, changed)
                )
            except PalyraError as error:
                step = Say(error.message)
        match step:
            case ApprovalDecision():
                self._answer(deciding, step)
            case Say(text=said):
                if said:
                    self._chat.say(clean(said))
            case Leave():
                self._left.add(deciding.request.approval_id)
                self.deciding = None
                self._chat.say(
                    "the approval stays pending: `palyra chat` or `palyra approvals` answers it"
                )
                self._chat.over = True

    def _edited(self, deciding: ApprovalPrompt) -> dict[str, object]:
        call_id = deciding.request.call_id
        known = self._chat.screen.calls.get(call_id)
        arguments = (
            known.arguments
            if known
            else approval_prompt.proposed(self._chat.api, self._chat.session.session_id, call_id)
        )
        with self._chat.terminal.lent():
            changed = approval_prompt.edit(arguments, self._env)
        self._chat.screen.lines(entries.edited_lines(self._style, arguments, changed))
        return changed

    def _answer(self, deciding: ApprovalPrompt, step: ApprovalDecision) -> None:
        approval_id = deciding.request.approval_id
        self.deciding = None
        together = deciding.others if step.together else ()
        answered = {approval_id, *(each.approval_id for each in together)}
        self._left |= answered
        try:
            if not step.together:
                send(self._chat.api, approval_id, step)
            elif problem := send_together(self._chat.api, deciding.request, step):
                # Each that is still pending is asked by itself.
                self._left -= answered
                self._chat.say(clean(problem))
        except PalyraError as error:
            if error.code != "conflict":
                # It was not answered: ask again.
                self._left -= answered
            raise

    @property
    def _style(self) -> Callable[..., str]:
        return self._chat.terminal.out.style
