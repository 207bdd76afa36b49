"""The line of a chat without a chat, on a terminal: says as JSON what was entered. Its arguments
are lines of the history.
"""

import json
import sys

from palyra.cli.chat.input_line import InputLine
from palyra.cli.chat.slash_commands import complete
from palyra.cli.chat.terminal import Terminal
from palyra.cli.output import Output


class Echo:
    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def prompt(self) -> str:
        return "> "

    def status_line(self) -> str:
        return ""

    def settle(self) -> None:
        pass

    def entered(self, text: str) -> None:
        self._terminal.input.remember(text)
        match text.split():
            case ["stream", count]:
                self._stream(int(count))
            case ["begin", count]:
                self._terminal.say("x" * int(count))
            case _:
                self._say("entered", text)

    def interrupted(self) -> None:
        self._say("interrupted", "")

    def suspended(self) -> None:
        self._terminal.suspend()

    def ended(self) -> None:
        self._terminal.leave()

    def _say(self, what: str, text: str) -> None:
        self._terminal.line(f"{what} {json.dumps(text)}")

    def _stream(self, left: int) -> None:
        """Say words one at a time, as a model does, a line break after every tenth; then what it
        took.
        """
        self._terminal.say(f"word{left} " + "\n" * (left % 10 == 0))
        self._terminal.redraw()
        if left:
            self._terminal.call_later(0, lambda: self._stream(left - 1))
        else:
            self._terminal.line("streamed")


if __name__ == "__main__":
    shown = Terminal(
        Output(as_json=False, color=True), InputLine(sys.argv[1:], lambda text: complete(text, "."))
    )
    shown.run(Echo(shown), lambda: None)
