"""Benchmark of what is left of long sessions with tools when they are condensed by rules: the
identifiers that later calls need, what the user wished, and what holds from now on.

All sessions of `agent_sessions.txt` make one long one. In the recorded runs in `PALYRA_MATERIAL`,
if they are there, all before each call is condensed. What a call is given and stood in an earlier
result counts as needed.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import agent_sessions
from bench.common import ROOT, Table
from palyra.core.conversation import Conversation
from palyra.core.events import (
    AnyEvent,
    Call,
    InputAssembled,
    InputReceived,
    ModelReplied,
    RunAccepted,
    RunCompleted,
    RunStarted,
    ToolDecided,
    ToolFinished,
    ToolProposed,
    ToolStarted,
)
from palyra.core.ids import CallId
from palyra.core.run_progress import Summary
from palyra.features.compaction import result_values, rule_summary

_WINDOWS = (32_000, 128_000)
_BYTES_PER_TOKEN = 4
# What users wished in the sessions: how, not what; the first ones hold from now on.
STANDING = (
    "we must not lock that table during opening hours",
    "never show customer names in it",
    "Please don't call them by phone for me, always in writing",
    "the board in rack 3",
    "Don't print it",
    "No alarm below 1,000 litres please",
)
WISHES = (
    "Add an index please, but concurrently",
    "Don't put a lock around it",
    "Use itertools.count",
    "I would like the money on my gift card, not on the Visa",
    "Round everything to thousands in the report",
    "Keep the HEIC files, do not convert them",
    "leave their names alone",
    "so none of those",
    "Use pg_upgrade --link, and rehearse on a copy",
    "Delivery to my office, not home",
    "Company blogs are not good enough as a source, leave that one out",
    "call it recovery, not harvesting",
    "weight matters more than the graphics card",
    "Don't block Tor",
    "Ignore it",
    "Use informal address everywhere",
    "follow it strictly",
    "Put an alert on certificates that have less than 21 days left",
    "The company pays at most 120 a night",
    "If they offer less than 6,500 in total, I want to object",
)


class _Tape:
    def __init__(self) -> None:
        self.seq = 0
        self.conversation = Conversation()

    def add(self, run_id: str, *several: AnyEvent) -> None:
        for event in several:
            self.seq += 1
            self.conversation.apply(self.seq, run_id, self.seq * 10, event)

    def say(self, text: str) -> str:
        run_id = f"run-{self.seq}"
        self.add(
            run_id, RunAccepted(), InputReceived(submission_id=run_id, text=text), RunStarted()
        )
        self.add(run_id, InputAssembled(turn=1, upto_seq=self.seq, parts=(), tokens=0, budget=0))
        return run_id

    def call(self, run_id: str, tool: str, arguments: dict[str, Any], result: str) -> None:
        call = Call(CallId(f"{run_id}-{self.seq}"), tool, arguments)
        self.add(
            run_id,
            ModelReplied(turn=1, provider="p", model="m", text="", calls=(call,)),
            ToolProposed(call_id=call.id, tool=tool, arguments=arguments),
            ToolDecided(call_id=call.id, verdict="allow", reason="r"),
            ToolStarted(call_id=call.id, key="k"),
            ToolFinished(call_id=call.id, outcome="ok", text=result),
        )

    def answer(self, run_id: str, text: str) -> None:
        self.add(
            run_id,
            ModelReplied(turn=1, provider="p", model="m", text=text),
            RunCompleted(text=text),
        )

    def condensed(self, window: int) -> str:
        turns = [turn for turn in self.conversation.turns if not isinstance(turn, Summary)]
        most = min(4_096, window // 5) * _BYTES_PER_TOKEN
        return rule_summary.render(rule_summary.condense((), turns, most), len(turns), 1, self.seq)


def tables() -> list[Table]:
    rows = []
    for window in _WINDOWS:
        tape = _sessions()
        text = tape.condensed(window)
        needed = [each for several in _needed_by_questions() for each in several]
        rows.append(
            (
                f"agent sessions, window {window:,}",
                _share(text, STANDING),
                _share(text, WISHES),
                _share(text, needed),
                f"{len(text) // _BYTES_PER_TOKEN:,}",
            )
        )
        if (found := _traces(window)) is not None:
            rows.append((f"recorded runs, window {window:,}", "-", "-", *found))
    columns = ("sessions", "standing wishes", "wishes", "needed identifiers", "tokens")
    return [Table("What a summary by rules keeps", columns, rows)]


def _share(text: str, wanted: Sequence[str]) -> str:
    kept = [each for each in wanted if " ".join(each.split()) in " ".join(text.split())]
    return f"{len(kept) / len(wanted):.2f} of {len(wanted)}"


def _sessions(tape: _Tape | None = None) -> _Tape:
    tape = tape or _Tape()
    for each in agent_sessions.read():
        run_id = ""
        for line in each.lines:
            if line.who == "user" or not run_id:
                run_id = tape.say(line.text)
            elif line.who == "agent":
                tape.answer(run_id, line.text)
                run_id = ""
            else:
                tape.call(run_id, line.who, {"with": line.given}, line.text)
        if run_id:
            tape.answer(run_id, "Done.")
    return tape


def _needed_by_questions() -> list[list[str]]:
    """The identifiers of results that a later call of the same session was given."""
    needed = []
    for each in agent_sessions.read():
        before = ""
        found = []
        for line in each.lines:
            for value in result_values.taken_from(line.given):
                if value in before:
                    found.append(value)
            if line.who not in ("user", "agent"):
                before += f"\n{line.text}"
        needed.append(found)
    return needed


def _traces(window: int) -> tuple[str, str] | None:
    folder = Path(os.environ.get("PALYRA_MATERIAL", ROOT.parent / "shared" / "material")) / "traces"
    wanted: list[bool] = []
    tokens = 0
    for path in sorted(folder.glob("*.json")):
        for run in json.loads(path.read_text()):
            kept, tokens = _trace(run["traj"], window)
            wanted += kept
    if not wanted:
        return None
    return f"{sum(wanted) / len(wanted):.2f} of {len(wanted)}", f"{tokens:,}"


def _trace(messages: list[dict[str, Any]], window: int) -> tuple[list[bool], int]:
    """Return, for each value that a call needed and an earlier result had, whether a summary of all
    before the call has it.
    """
    tape = _Tape()
    run_id = ""
    results = ""
    kept: list[bool] = []
    text = ""
    calls: dict[str, dict[str, Any]] = {}
    for message in messages:
        match message["role"]:
            case "user":
                run_id = tape.say(message["content"])
            case "assistant" if message.get("tool_calls"):
                for call in message["tool_calls"]:
                    calls[call["id"]] = call["function"]
                    given = str(json.loads(call["function"]["arguments"]))
                    values = [v for v in result_values.taken_from(given) if v in results]
                    if values:
                        text = tape.condensed(window)
                        kept += [value in text for value in values]
            case "assistant" if run_id:
                tape.answer(run_id, message["content"] or "")
            case "tool":
                function = calls[message["tool_call_id"]]
                tape.call(
                    run_id,
                    function["name"],
                    json.loads(function["arguments"]),
                    str(message["content"]),
                )
                results += f"\n{message['content']}"
            case _:
                continue
    return kept, len(text) // _BYTES_PER_TOKEN
