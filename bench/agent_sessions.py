"""The sessions of `agent_sessions.txt`: people with an agent that has tools, and what is asked
about them afterwards.
"""

import re
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).resolve().parent / "agent_sessions.txt"
_QUESTION = re.compile(r"q ([\d,]+) (.+)")


class Line(NamedTuple):
    """`who` is user, agent or a tool; what a tool was called with stands before its result."""

    who: str
    text: str
    given: str = ""


class Asked(NamedTuple):
    text: str
    lines: tuple[int, ...]


class AgentSession(NamedTuple):
    title: str
    lines: list[Line]
    questions: list[Asked]
    unanswered: list[str]


def read() -> list[AgentSession]:
    sessions: list[AgentSession] = []
    for line in _FILE.read_text().splitlines():
        if line.startswith("== "):
            sessions.append(AgentSession(line[3:], [], [], []))
        elif line.startswith("? "):
            sessions[-1].unanswered.append(line[2:])
        elif found := _QUESTION.fullmatch(line):
            numbers = tuple(int(each) - 1 for each in found[1].split(","))
            sessions[-1].questions.append(Asked(found[2], numbers))
        elif line[:2] in ("U ", "A "):
            who = "user" if line[0] == "U" else "agent"
            sessions[-1].lines.append(Line(who, line[2:]))
        elif line.startswith("T "):
            call, _, result = line[2:].partition(" => ")
            tool, _, given = call.partition(" ")
            sessions[-1].lines.append(Line(tool, result.replace("\\n", "\n"), given))
    return sessions
