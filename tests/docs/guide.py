"""Follows a guide the way its reader does: types what stands behind a prompt, and looks for every
line that is shown below it.

In a `console` block `$ ` is the shell's prompt; `› `, or a question that ends in `› ` or `) `, is
the chat's. `…` stands for anything. Other blocks are for reading only. A chat goes on in the next
block that does not begin with the shell's prompt.
"""

import os
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.cli_terminal import Terminal, environment, terminal

CHAT = "palyra chat"
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SAID = re.compile(r"(› |.*\[q\]uit › |which\? .*\) |for how long\? .*\) )(.*)")
# Values that differ from day to day and from machine to machine.
_VARYING = (
    r"[0-9A-HJKMNP-TV-Z]{26}",
    r"\d{8}-\d{6}",
    r"\d{4}-\d\d-\d\d \d\d:\d\d",
    r"[\d,]+ (?:entries|tapes)",
    r"\d+ min \d+ s",
    r"[\d.]+ (?:ms|s|min|GB)\b",
    r"127\.0\.0\.1:\d+",
    r"pid \d+",
    r"\b[0-9a-f]{16}\b",
)
_VARIES = re.compile("|".join(f"({each})" for each in _VARYING))
_COMMAND_S = 60.0
# One shell for the whole guide, so that folders, variables and jobs last. Nobody is at the
# keyboard.
_SHELL = """while IFS= read -r -d '' -u {commands} command; do
    eval "$command" </dev/null {commands}<&- {codes}>&-
    echo $? >&{codes}
done"""


@dataclass(frozen=True)
class Step:
    """What is typed, and what is shown after it. `prompt` is what stands before it in a chat;
    without one, nothing is typed.
    """

    where: Literal["shell", "chat"]
    typed: str
    prompt: str = ""
    shown: list[str] = field(default_factory=list)


def steps(markdown: str) -> list[Step]:
    found: list[Step] = []
    for block in _BLOCK.findall(markdown):
        in_chat = not block.startswith("$ ")
        if in_chat:
            found.append(Step("chat", "", ""))
        lines = iter(block.splitlines())
        for line in lines:
            said = _SAID.fullmatch(line) if in_chat else None
            if line.startswith("$ "):
                found.append(Step("shell", "\n".join([line[2:], *_here_document(line, lines)])))
                in_chat = line[2:].startswith(CHAT)
            elif said:
                found.append(Step("chat", said[2], said[1]))
            elif line.strip():
                found[-1].shown.append(line)
    return found


def _here_document(line: str, lines: Iterator[str]) -> Iterator[str]:
    if line.endswith("<<END"):
        for each in lines:
            yield each
            if each == "END":
                return


class Reader:
    """Somebody with a home folder of their own who follows the steps."""

    def __init__(self, home: Path, project: Path, instead: dict[str, str]) -> None:
        self._home = home
        self._instead = {"/home/anna": str(home)} | instead
        bin = str(Path(sys.executable).parent)
        self.env = environment(
            home / ".palyra", {"HOME": str(home), "PATH": f"{bin}:{os.environ['PATH']}"}
        ) | {
            "PALYRA_SERVER__HTTP_PORT": "0",
            "PWD": str(home),
        }
        del self.env["PALYRA_HOME"]
        (home / "palyra").symlink_to(project)
        self._output = home / "output"
        self._chat: Terminal
        self._streaming = False

    def follow(self, guide: list[Step]) -> None:
        with ExitStack() as open_ones:
            run = open_ones.enter_context(_shell(self.env, self._home, self._output))
            open_ones.callback(run, "kill $(jobs -p); palyra stop --daemon")
            for step in guide:
                if step.where == "chat":
                    self._say(step)
                elif step.typed.startswith(CHAT):
                    arguments, folder = step.typed.split()[1:], Path(run("pwd")[1].strip())
                    self._chat = open_ones.enter_context(
                        terminal(self._home / ".palyra", *arguments, cwd=folder, env=self.env)
                    )
                    self._expect(step)
                else:
                    self._run(step, run)

    def _run(self, step: Step, run: "Shell") -> None:
        code, said = run(self._here(step.typed))
        assert code == 0, f"`{step.typed}` ended with {code}:\n{said}"
        at = 0
        for line in step.shown:
            found = re.compile(rf"^{self.pattern(line)}$", re.MULTILINE).search(said, at)
            assert found, f"`{step.typed}` did not print {line!r} (in this order), but:\n{said}"
            at = found.end()

    def _say(self, step: Step) -> None:
        if step.prompt:
            if not self._streaming:
                self._chat.expect(re.escape(step.prompt))
            self._chat.line(step.typed)
        self._expect(step)

    def _expect(self, step: Step) -> None:
        for line in step.shown:
            self._chat.expect(self.pattern(line) + ("" if line.endswith("…") else r"(?=\s)"))
        # What ends in an ellipsis is still being said: there is no prompt to wait for.
        self._streaming = (
            step.shown[-1].endswith("…") if step.shown else self._streaming and not step.prompt
        )

    def pattern(self, line: str) -> str:
        """A shown line as an expression: what varies may vary, and a terminal may break it anywhere
        between two words.
        """
        pieces = []
        for piece in self._here(line).split("…"):
            at = 0
            for found in _VARIES.finditer(piece):
                pieces += [
                    _words(piece[at : found.start()]),
                    _VARYING[found.lastindex - 1 if found.lastindex else 0],
                ]
                at = found.end()
            pieces += [_words(piece[at:]), ".*?"]
        return "".join(pieces[:-1])

    def _here(self, text: str) -> str:
        for ours, theirs in self._instead.items():
            text = text.replace(ours, theirs)
        return text


def _words(text: str) -> str:
    return re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(text))


class Shell:
    """A shell that takes commands one after the other. Gives the exit code and everything that was
    printed.
    """

    def __init__(self, commands: int, codes: int, output: Path) -> None:
        self._commands = commands
        self._codes = codes
        self._output = output

    def __call__(self, command: str) -> tuple[int, str]:
        begin = self._output.stat().st_size
        os.write(self._commands, command.encode() + b"\0")
        ended = bool(select.select([self._codes], [], [], _COMMAND_S)[0])
        with self._output.open("rb") as handle:
            handle.seek(begin)
            said = handle.read().decode()
        assert ended, f"`{command}` did not end within {_COMMAND_S} s:\n{said}"
        return int(os.read(self._codes, 16)), said


@contextmanager
def _shell(env: dict[str, str], folder: Path, output: Path) -> Iterator[Shell]:
    theirs, commands = os.pipe()
    codes, answers = os.pipe()
    with output.open("wb") as sink:
        process = subprocess.Popen(
            ["bash", "-c", _SHELL.format(commands=theirs, codes=answers)],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            pass_fds=(theirs, answers),
        )
    os.close(theirs)
    os.close(answers)
    try:
        yield Shell(commands, codes, output)
    finally:
        os.close(commands)
        process.wait(_COMMAND_S)
        os.close(codes)
