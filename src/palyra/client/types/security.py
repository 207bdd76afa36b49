"""Written by scripts/clients.py from the route table: types of the verbs about security."""

from typing import Literal

from msgspec import Struct

from palyra.client.types.policy import Permit
from palyra.core.labels import Label

__all__ = [
    "LabelledFile",
    "LabelledFiles",
    "MetSource",
    "RepeatedAnswer",
    "SecurityDay",
    "SecurityScore",
    "UnattendedTool",
]


class SecurityDay(Struct, frozen=True, kw_only=True):
    """One day, by UTC. `tasks` are runs with tool calls that had their first one on that day;
    `quiet_tasks` of them had no question.
    """

    day_ms: int
    tasks: int
    quiet_tasks: int
    calls: int
    questions: int


class UnattendedTool(Struct, frozen=True, kw_only=True):
    """Tool that ran without a question. `after_untrusted`: when the conversation had read untrusted
    content. `exposed`: of these, calls that reach out or cannot be undone, to a place that nobody
    vouches for; `example` is the last of them.
    """

    tool: str
    calls: int
    by_grant: int
    after_untrusted: int
    exposed: int
    example: str = ""
    call_id: str = ""


class RepeatedAnswer(Struct, frozen=True, kw_only=True):
    """The same question, always answered in the same way."""

    tool: str
    about: str
    decision: Literal["again", "allow", "deny", "expired", "happened", "skip", "withdrawn"]
    times: int


class MetSource(Struct, frozen=True, kw_only=True):
    """Untrusted content with words that look like an instruction to the agent, and where it was
    first read.
    """

    source: str
    times: int
    words: str
    session_id: str
    seq: int
    time_ms: int


class SecurityScore(Struct, frozen=True, kw_only=True):
    """`score` is null where no tool was called. `quiet_tasks` had no question. `permits` would have
    saved `saved` of the questions; nothing that was denied is covered by them.
    """

    since_ms: int
    score: int | None
    lost_to_exposure: int
    lost_to_questions: int
    tasks: int
    quiet_tasks: int
    calls: int
    questions: int
    approved: int
    edited: int
    denied: int
    expired: int
    refused: int
    unattended: int
    exposed: int
    days: list[SecurityDay]
    tools: list[UnattendedTool]
    repeated: list[RepeatedAnswer]
    permits: list[Permit]
    saved: int
    sources: list[MetSource]


class LabelledFile(Struct, frozen=True, kw_only=True):
    """A file, or a folder with everything in it. `digest`: the SHA-256 of what was written, where
    it is known.
    """

    path: str
    digest: str
    label: Label
    session_id: str
    run_id: str
    labelled_ms: int


class LabelledFiles(Struct, frozen=True, kw_only=True):
    files: list[LabelledFile]
