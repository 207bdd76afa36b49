"""Things to learn from: what is said in a session of its own, and runs that ask before they
write.
"""

from typing import Any

from tests.daemon import DaemonProcess


def script() -> dict[str, Any]:
    """A release in two steps, done the same way each time, and files that are written after a
    yes.
    """

    def write(path: str, content: str) -> dict[str, Any]:
        return {"name": "fs.write", "arguments": {"path": path, "content": content}}

    def release(version: str) -> list[dict[str, Any]]:
        edit = {"path": "VERSION", "search": version, "replace": f"{version}!"}
        return [
            {"calls": [write("VERSION", f"{version}\n")]},
            {"calls": [{"name": "fs.patch", "arguments": {"edits": [edit]}}]},
            {"text": "released"},
        ]

    releases = {f"Release version {version}": release(version) for version in ("one", "two")}
    writes = {
        f"write {number}": [{"calls": [write(f"notes/{number}.txt", "x")]}, {"text": "ok"}]
        for number in range(3)
    }
    return {"*": [{"text": "fine"}], **releases, **writes}


def learned(daemon: DaemonProcess, text: str) -> list[dict[str, Any]]:
    """What is learned from saying this."""
    _, entries = daemon.run(text)
    return list(daemon.post(f"/v1/runs/{entries[-1]['run_id']}/reflect")["candidates"])


def approved(daemon: DaemonProcess, text: str) -> tuple[str, str]:
    """Something that asks first, with a yes to every question; its session and run."""
    session = daemon.post("/v1/sessions")["session_id"]
    sent = daemon.post(f"/v1/sessions/{session}/messages", {"text": text})
    for _, kind, entry in daemon.events(
        f"/v1/sessions/{session}/events?after={sent['seq']}&until={sent['run_id']}"
    ):
        if kind == "entry" and entry["kind"] == "approval.requested":
            daemon.post(
                f"/v1/approvals/{entry['event']['approval_id']}/answer", {"decision": "allow"}
            )
    return session, sent["run_id"]
