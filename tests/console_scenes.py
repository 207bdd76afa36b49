"""What the console shows when somebody works with it: a small garden project, asked about, changed,
remembered. For its pictures.

Every scene opens one page and waits until what it is about is there.
"""

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests import (
    console_channels,
    console_connections,
    console_life,
    console_moments,
    console_timeline,
)
from tests.console_health import incident, task, used_by
from tests.daemon import DaemonProcess

_CONFIG = """[limits]
requests_per_second = 1000
[policy]
shadow = 'coding'
[models]
default = "scripted/s1"
fallbacks = ["home/small"]
[providers.home]
kind = "scripted"
models = ["small"]
script = "{script}"
[routing.private-at-home]
label = "private"
use = ["home/small"]
[healing]
mode = "observe_only"
"""
_PRICES = '[models]\n"scripted/*" = { input = 3.0, cached = 0.3, output = 15.0 }\n'
_SKILLS = Path(__file__).parent.parent / "examples" / "skills"
_PLAN = "# Garden plan\n\n- March: sow tomatoes indoors\n- April: turn the compost, prepare bed 2\n- May: plant out\n"
_SPEND = {"input_tokens": 2_140, "output_tokens": 164, "cached_tokens": 1_800}
_ANSWER = (
    "The bed plan has three beds. Tomatoes stand where they stood last year, which invites blight:\n\n"
    "| bed | last year | this year |\n|---|---|---|\n| 1 | beans | lettuce |\n| 2 | tomatoes | **tomatoes** |\n"
    "| 3 | squash | beans |\n\n"
    'Swap beds 2 and 3, and the rotation is right again:\n\n```toml\n[bed.2]\nplant = "beans"\n[bed.3]\nplant = "tomatoes"\n```\n'
)
_RULES = """@id("garden-notes-stay")
@reason("the notes folder is read, not changed")
forbid (principal, action == Action::"run", resource in Group::"writers") when {
  context.touches.contains("/home/me/garden/notes")
};
"""
_MORE_RULES = """
@id("no-commands")
@reason("nothing is run in the garden")
forbid (principal, action == Action::"run", resource == Tool::"shell.run");
"""


def _beds(second: str, third: str) -> str:
    plants = ("lettuce", second, third)
    return "\n".join(
        f'[bed.{number}]\nplant = "{plant}"\nwidth = "{number + 1} m"\n'
        for number, plant in enumerate(plants, 1)
    )


def furnish(home: Path) -> str:
    """What a home has before its daemon starts; gives its config."""
    home.mkdir(mode=0o700)
    (home / "prices.toml").write_text(_PRICES)
    return _CONFIG.format(script=home / "script.json") + console_connections.CONFIG


def script() -> dict[str, Any]:
    def turn(**what: Any) -> dict[str, Any]:
        return {"usage": _SPEND, **what}

    beds = {"name": "fs.read", "arguments": {"path": "beds.toml"}}
    plan = {"name": "fs.write", "arguments": {"path": "plan.md", "content": _PLAN}}
    change = {
        "name": "fs.write",
        "arguments": {
            "path": "beds.toml",
            "content": _beds("beans", "tomatoes"),
        },
    }
    return {
        "*": [turn(text="Done.")],
        **console_life.script(),
        **console_connections.script(),
        **console_moments.script(),
        "Is the rotation of my beds right?": [
            turn(
                text="I look at the plan.",
                reasoning="The beds are in a file; read it first.",
                calls=[beds],
            ),
            turn(text=_ANSWER),
        ],
        "Write a plan for spring": [
            turn(text="I write it down.", calls=[plan]),
            turn(text="The plan is in `plan.md`."),
        ],
        "Swap beds 2 and 3": [
            turn(text="I change the file.", calls=[change]),
            turn(text="Swapped."),
        ],
        "What is in this folder?": [
            turn(calls=[{"name": "fs.list", "arguments": {"path": "."}}]),
            turn(text="`beds.toml` and a folder of notes."),
        ],
        "Clean the old notes up": [
            turn(
                text="I would remove them.",
                calls=[{"name": "shell.run", "arguments": {"command": "rm -r notes/2019"}}],
            ),
            turn(text="They stay."),
        ],
    }


def fill(daemon: DaemonProcess) -> str:
    """Real work; gives the session that is looked at."""
    notes = daemon.workspace / "notes" / "2019"
    notes.mkdir(parents=True)
    (notes / "april.md").write_text("Frost until the 20th.\n")
    (daemon.workspace / "beds.toml").write_text(_beds("tomatoes", "beans"))
    for text in ("What is in this folder?", "What did I sow last year?", "When is the last frost?"):
        daemon.run(text)
    asked(daemon, "Write a plan for spring", "allow")
    asked(daemon, "Clean the old notes up", "deny")
    session, _ = daemon.run("Is the rotation of my beds right?")
    asked(daemon, "Swap beds 2 and 3", "", session)
    for text in (
        "The last frost here is on the 20th of April",
        "I prefer organic seeds",
        "Bed 2 gets sun until noon",
    ):
        daemon.post("/v1/memory", {"text": text})
    daemon.post("/v1/policy/files", {"name": "garden.cedar", "text": _RULES})
    source = str(next(path for path in sorted(_SKILLS.iterdir()) if (path / "SKILL.md").exists()))
    proposal = daemon.post("/v1/skills", {"path": source})
    daemon.post("/v1/skills", {"path": source, "confirm": proposal["digest"]})
    daemon.post(
        "/v1/vault",
        {"name": "WEATHER_KEY", "value": os.urandom(12).hex(), "hosts": ["api.example.org"]},
    )
    daemon.post("/v1/tokens", {"name": "phone", "scope": "operator"})
    console_life.fill(daemon)
    console_channels.fill(daemon)
    console_moments.fill(daemon)
    daemon.post("/v1/journal/backup")
    daemon.request(
        "PUT", "/v1/budgets/month", {"every": "month", "microusd": 4_000_000, "then": "ask"}
    )
    daemon.request(
        "PUT",
        "/v1/budgets/guests",
        {"per": "principal", "who": "guest", "every": "day", "tokens": 50_000},
    )
    task(
        daemon, "failed", kind="weather.fetch", error="api.example.org does not answer", attempts=3
    )
    tried = [
        {"remedy": "reconnect", "result": "failed", "time_ms": now, "detail": "no answer"}
        for now in (_now_ms(),)
    ]
    incident(
        daemon,
        "the weather station does not answer",
        fix="check its cable",
        severity="warning",
        tried=tried,
    )
    for days, hours, severity, domain, summary in (
        (1.1, 3, "warning", "connector", "the weather station does not answer"),
        (2.6, 1, "error", "resource", "only 180 MiB are free for the home folder"),
        (4.4, 7, "info", "worker", "the worker attic has been away for 2 min"),
    ):
        opened_ms = _now_ms() - int(days * 86_400_000)
        incident(
            daemon,
            summary,
            severity=severity,
            domain=domain,
            opened_ms=opened_ms,
            closed_ms=opened_ms + hours * 3_600_000,
        )
    _past_usage(daemon, session)
    console_timeline.fill(daemon)
    return session


def _past_usage(daemon: DaemonProcess, session: str) -> None:
    """What two weeks of use leave behind, more on some days than on others."""
    day_ms = 86_400_000
    for days in range(1, 17):
        for call in range(2 + days * 7 % 4):
            tokens = 6_000 + (days * 9_973 + call * 4_421) % 38_000
            own = call % 2 == 0
            used_by(
                daemon,
                "user:owner" if call else "guest",
                tokens,
                time_ms=_now_ms() - days * day_ms + call * 3_600_000,
                session_id=session if own else "",
                output_tokens=tokens // 14,
                cached_tokens=tokens * 8 // 10,
                cost_microusd=tokens if own else tokens // 5,
                provider="scripted" if own else "home",
                model="s1" if own else "small",
                duration_ms=900 + (tokens * 13) % 6_000,
                first_delta_ms=180 + (tokens * 7) % 1_400,
            )


def _now_ms() -> int:
    return int(time.time() * 1000)


def asked(daemon: DaemonProcess, text: str, decision: str, session: str = "") -> None:
    """Something that asks first. Without a decision it goes on waiting."""
    session = session or daemon.post("/v1/sessions")["session_id"]
    sent = daemon.post(f"/v1/sessions/{session}/messages", {"text": text})
    path = f"/v1/sessions/{session}/events?after={sent['seq']}&until={sent['run_id']}"
    for _, kind, entry in daemon.events(path):
        if kind == "entry" and entry["kind"] == "approval.requested":
            if not decision:
                return
            daemon.post(
                f"/v1/approvals/{entry['event']['approval_id']}/answer", {"decision": decision}
            )


Scene = Callable[[Page, DaemonProcess, str], None]


def _at(where: str, ready: str, then: Callable[[Page], None] | None = None) -> Scene:
    def scene(page: Page, daemon: DaemonProcess, session: str) -> None:
        page.goto(f"{daemon.url}/#/{where.replace('SESSION', session)}")
        expect(page.locator(ready).first).to_be_visible()
        if then is not None:
            then(page)

    return scene


def _verified(page: Page) -> None:
    page.get_by_role("button", name="Verify journal").click()
    expect(page.get_by_text("Intact:")).to_be_visible()


def _timeline(page: Page, daemon: DaemonProcess, session: str) -> None:
    page.goto(f"{daemon.url}/#/timeline")
    runs = page.get_by_role("list", name="Sessions").get_by_role("link")
    runs.filter(has_text="Is the rotation of my beds right?").first.click()
    page.locator(".step-row").filter(has_text=re.compile(r"^fs\.write")).click()
    page.get_by_role("tab", name="Why").click()
    expect(page.locator(".tape-entry h2")).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)


def _policy(page: Page) -> None:
    page.get_by_role("button", name="garden.cedar").click()
    page.get_by_role("textbox", name="garden.cedar").fill(_RULES + _MORE_RULES)
    expect(page.get_by_text("forbid no-commands")).to_be_visible()
    page.get_by_role("button", name="Backtest").click()
    expect(page.locator(".tile").first).to_be_visible()


def _by_session(page: Page) -> None:
    page.get_by_role("button", name="Session", exact=True).click()
    expect(page.get_by_role("table", name="Usage by session")).to_be_visible()


def _plan(page: Page, daemon: DaemonProcess, session: str) -> None:
    run = daemon.get(f"/v1/sessions/{session}/runs")["runs"][-1]["run_id"]
    page.goto(f"{daemon.url}/#/usage/run/{run}")
    expect(page.get_by_role("list", name="Plans").locator(".card").first).to_be_visible()


PAGES: dict[str, Scene] = {
    "chat": _at(
        "chat/SESSION",
        "button.yes",
        lambda page: expect(page.locator("button.yes")).to_be_enabled(),
    ),
    "approvals": _at(
        "approvals", "button.yes", lambda page: expect(page.locator("button.yes")).to_be_enabled()
    ),
    "timeline": _timeline,
    "memory": _at("memory", ".remembered"),
    **console_life.PAGES,
    **console_channels.PAGES,
    **console_connections.PAGES,
    "policies": _at("policies", "table[aria-label='Permissions'] tbody tr"),
    "policy-editor": _at("policies/files", ".editor", _policy),
    "security": _at("security", "table[aria-label='Unattended calls by tool'] tbody tr"),
    "skills": _at("skills", ".card"),
    "usage": _at("usage", "figure svg", _by_session),
    "plan": _plan,
    "journal": _at("journal", "h2", _verified),
    "health": _at("health", ".check"),
    "settings": _at("settings", "[aria-label=Providers] .card"),
    "tour": _at("tour", "h1"),
    **console_moments.PAGES,
}
