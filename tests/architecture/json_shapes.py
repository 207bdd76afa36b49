"""The shapes of what commands print with --json, taken from a real daemon that has something of
everything to show.
"""

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests import daemon as daemons
from tests.cli_terminal import palyra
from tests.daemon import DaemonProcess

MISSING = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
_WRITE = {"name": "fs.write", "arguments": {"path": "a.txt", "content": "x\n"}}
_SCRIPT = {
    "*": [{"text": "the answer", "usage": {"input_tokens": 12, "output_tokens": 3}}] * 9,
    "write": [{"text": "I will write", "calls": [_WRITE]}, {"text": "written"}],
    "broken": [{"fail": {"failure": "auth", "message": "the key is wrong"}}],
}
_CONFIG = """[memory]
embeddings = false
[limits]
requests_per_second = 100000
[budgets.limits.monthly]
tokens = 1000000
per = "principal"
every = "month"
[channels.garden]
kind = "loopback"
[waiting.patience_ms]
interactive = 0
api = 0
"""
# Keys that a user or the daemon makes up: the table is a map, and its keys are no part of its
# shape.
_MADE_UP = re.compile(r"[0-9A-Z]{26}|[0-9a-f]{16,}|.*[/:.*\s-].*|\d+|")
# Left out when they are 0, which depends on how fast the machine is.
_DURATIONS = {"duration_ms", "first_delta_ms", "slept_ms"}
_SKILL = "---\nname: greet\ndescription: Greet people by their name.\n---\n\nSay hello.\n"


def shape(value: Any) -> Any:
    """The keys and types of a JSON value. A key that some elements of a list lack ends with `?`."""
    if isinstance(value, dict):
        if value and all(_MADE_UP.fullmatch(key) for key in value):
            return {"*": _merged([shape(each) for each in value.values()])}
        return {key: shape(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_merged([shape(each) for each in value])] if value else []
    return {bool: "bool", int: "number", float: "number", str: "text", type(None): "null"}[
        type(value)
    ]


def _merged(shapes: list[Any]) -> Any:
    if all(isinstance(each, dict) for each in shapes):
        keys = sorted({key.removesuffix("?") for each in shapes for key in each})
        found = {}
        for key in keys:
            there = [
                each.get(key, each.get(key + "?"))
                for each in shapes
                if key in each or key + "?" in each
            ]
            always = all(key in each for each in shapes)
            found[key if always else key + "?"] = _merged(there)
        return found
    if all(isinstance(each, list) for each in shapes):
        inner = [each[0] for each in shapes if each]
        return [_merged(inner)] if inner else []
    different = sorted({json.dumps(each, sort_keys=True) for each in shapes})
    return (
        json.loads(different[0])
        if len(different) == 1
        else " | ".join(sorted(each.strip('"') for each in different))
    )


@contextmanager
def _daemon() -> Iterator[DaemonProcess]:
    with (
        tempfile.TemporaryDirectory() as folder,
        daemons.start(Path(folder), config=_CONFIG, script=_SCRIPT) as daemon,
    ):
        yield daemon


def _ids(daemon: DaemonProcess) -> dict[str, str]:
    """Something of everything, by the names that the commands below use."""
    workspace = str(daemon.workspace)
    (daemon.workspace / "AGENTS.md").write_text("Be brief.\n")
    skill = daemon.workspace.parent / "greet"
    skill.mkdir()
    (skill / "SKILL.md").write_text(_SKILL)
    ids = {"missing": MISSING, "skill": str(skill)}
    ids["session"] = daemon.post("/v1/sessions", {"workspace": workspace})["session_id"]
    daemon.run("hello there", ids["session"])
    _, entries = daemon.run("hello again", ids["session"])
    ids["run"], ids["seq"] = entries[0]["run_id"], str(entries[-1]["seq"])
    # A write that changes nothing does not ask, so the one that is allowed comes last.
    _, ids["denied"] = _ask(daemon, workspace, {"decision": "deny"})
    _, ids["pending"] = _ask(daemon, workspace, None)
    ids["written"], ids["asked"] = _ask(
        daemon, workspace, {"decision": "allow", "scope": "session"}
    )
    daemon.run("broken")
    ids["memory"] = daemon.post("/v1/memory", {"text": "the garden gate is green"})["memory_id"]
    schedule = daemon.post(
        "/v1/schedules", {"text": "hello", "when": "daily at 9", "zone": "UTC", "name": "morning"}
    )
    ids["schedule"] = schedule["schedule"]["schedule_id"]
    # The one task whose moment does not come while this runs: what the others look like depends on
    # how fast everything is.
    ids["task"] = next(
        each["task_id"]
        for each in daemon.get("/v1/tasks")["tasks"]
        if each.get("schedule_id") == ids["schedule"]
    )
    seen = json.loads(_done(daemon, "skills", "look", ids["skill"], "--json"))
    _done(daemon, "skills", "install", ids["skill"], "--yes", seen["digest"])
    _done(daemon, "rules", "add", "never use fs.patch", "--session", ids["session"])
    _done(daemon, "vault", "set", "DEPLOY", "--host", "example.com", stdin="a long secret value\n")
    return ids


def _done(daemon: DaemonProcess, *arguments: str, stdin: str | None = None) -> str:
    done = palyra(daemon.home, *arguments, cwd=daemon.workspace, stdin=stdin)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def _ask(daemon: DaemonProcess, workspace: str, answer: dict[str, str] | None) -> tuple[str, str]:
    """A call that waits for an approval, and its answer; its session and the approval."""
    session_id = daemon.post("/v1/sessions", {"workspace": workspace})["session_id"]
    daemon.post(f"/v1/sessions/{session_id}/messages", {"text": "write"})
    approval_id = ""
    for _, event, data in daemon.events(f"/v1/sessions/{session_id}/events"):
        if event == "entry" and data["kind"] == "approval.requested":
            approval_id = data["event"]["approval_id"]
            if answer is None:
                break
            daemon.post(f"/v1/approvals/{approval_id}/answer", answer)
        elif event == "entry" and data["kind"] == "run.completed":
            break
    return session_id, approval_id


# Commands that only look, or that change what nobody else looks at; names in braces come from
# `_ids`.
READING = (
    "version",
    "status",
    "sessions",
    "sessions list",
    "sessions list --archived",
    "sessions show {session}",
    "sessions search hello",
    "sessions at {session} {seq}",
    "sessions at {session} {seq} --turns 1",
    "sessions compact {session} --preview",
    "sessions compactions {session}",
    "sessions archive-old --days 1 --dry-run",
    "approvals list",
    "approvals list --all",
    "approvals show {asked}",
    "approvals show {denied}",
    "approvals show {pending}",
    "approvals grants",
    "undo --preview --session {written}",
    "usage --by model",
    "usage show",
    "usage show --by model",
    "usage forecast",
    "usage budgets",
    "why-tokens {run}",
    "why-tokens {run} --all",
    "replay {run}",
    "journal show 1",
    "journal show {session}",
    "journal verify",
    "journal segments",
    "journal clean --dry-run",
    "policy show",
    "policy check",
    "policy explain fs.read path=a.txt",
    "policy suggest",
    "policy shadow",
    "policy test locked",
    "rules list --session {session}",
    "notes list",
    "notes show AGENTS.md",
    "notes diff AGENTS.md",
    "channels list",
    "channels status garden",
    "channels rules garden",
    "channels people",
    "channels dead",
    "channels pair",
    "channels preview garden hello --from anna",
    "channels trace",
    "mcp list",
    "workers list",
    "skills list",
    "skills show greet",
    "skills look {skill}",
    "skills publishers",
    "schedule list",
    "schedule show {schedule}",
    "schedule next {schedule}",
    "tasks show {task}",
    "browser status",
    "memory list",
    "memory show {memory}",
    "memory history {memory}",
    "memory search garden",
    "memory search garden --explain",
    "memory export",
    "memory review",
    "learn list",
    "learn settings",
    "vault list",
    "config show",
    "config show --changed",
    "config get server.host",
    "config check",
    "config path",
    "token list",
    "tls show",
    "login",
    "doctor",
    "incidents list",
    "notices list",
    "refs preview @file:AGENTS.md",
    # Wrong ones: the shape of an error.
    "sessions show {missing}",
    "config get no.such.key",
    # These change something, after everything else was looked at.
    "ask hello",
    "sessions title {session} other",
    "sessions branch {session}",
    "sessions keep {session}",
    "sessions archive {session}",
    "sessions unarchive {session}",
    "sessions pin {session} {seq}",
    "approvals deny {pending}",
    "memory add lilacs",
    "memory pin {memory}",
    "memory forget {memory}",
    "schedule pause {schedule}",
    "schedule resume {schedule}",
    "schedule remove {schedule}",
    "channels pause garden",
    "channels resume garden",
    "token create robot --scope viewer",
    "journal backup",
    "backup now",
    "backup list",
    "backup check",
    "fork {run} --at {seq}",
    "policy reload",
    "undo --session {written}",
    "stop",
)


def differences(recorded: Any, now: Any, where: str = "") -> Iterator[str]:
    """Where a shape is another than the recorded one. A key recorded with `?` may be missing."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        known = {key.removesuffix("?"): key for key in recorded}
        here = {key.removesuffix("?"): key for key in now}
        for name, key in known.items():
            if name not in here:
                if not key.endswith("?") and name not in _DURATIONS:
                    yield f"{where}.{name} is gone"
            elif here[name].endswith("?") and not key.endswith("?") and name not in _DURATIONS:
                yield f"{where}.{name} is missing at times"
            else:
                yield from differences(recorded[key], now[here[name]], f"{where}.{name}")
        yield from (
            f"{where}.{name} is new"
            for name in here
            if name not in known and name not in _DURATIONS
        )
    elif isinstance(recorded, list) and isinstance(now, list):
        if recorded and now:
            yield from differences(recorded[0], now[0], f"{where}[]")
    elif isinstance(recorded, str) and isinstance(now, str):
        if not set(now.split(" | ")) <= set(recorded.split(" | ")):
            yield f"{where} is {now}, not {recorded}"
    elif recorded != now:
        yield f"{where} is {json.dumps(now)[:200]}, not {json.dumps(recorded)[:200]}"


def merged(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What several runs have in common, and `?` for what only some of them show (a duration of 0 ms
    is left out).
    """
    for run in runs[1:]:
        assert {key: each["exit"] for key, each in run.items()} == {
            key: each["exit"] for key, each in runs[0].items()
        }
    return {
        key: {"exit": runs[0][key]["exit"], "prints": _merged([run[key]["prints"] for run in runs])}
        for key in runs[0]
    }


def json_shapes() -> dict[str, Any]:
    """Each command of READING with its exit code and the shape of what it prints."""
    found: dict[str, Any] = {}
    with _daemon() as daemon:
        ids = _ids(daemon)
        for command in READING:
            arguments = [word.format(**ids) for word in command.split(" ")]
            done = palyra(daemon.home, *arguments, "--json", cwd=daemon.workspace)
            stream = done.stdout if done.stdout.strip() else done.stderr
            found[command] = {"exit": done.returncode, "prints": _printed(stream)}
    return found


def _printed(text: str) -> Any:
    """One JSON value, or the shapes of lines that are one each, every different shape once."""
    try:
        return shape(json.loads(text))
    except json.JSONDecodeError:
        pass
    try:
        lines = [shape(json.loads(line)) for line in text.splitlines()]
    except json.JSONDecodeError:
        return "text"
    return {"lines": [_merged(lines)]}
