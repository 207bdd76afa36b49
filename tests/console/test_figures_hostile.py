"""What providers, tools, tasks and strangers say on the pages of usage and health stays text, and
cannot pass for a button.
"""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.console_health import incident, task, used_by
from tests.console_world import Person, read
from tests.daemon import DaemonProcess, start

SCRIPT = "<img src=x onerror='window.owned=1'><script>window.owned=2</script>"
BIDI = "gpj\u202egnp"
BUTTON = "<button>Repair</button>"
HOSTILE = f"{SCRIPT} {BUTTON} {BIDI} [here](javascript:window.owned=3)"
CONFIG = """[limits]
requests_per_second = 1000
[models]
default = "scripted/s1"
fallbacks = ["spare/p1"]
[providers.spare]
kind = "scripted"
models = ["p1"]
script = "{spare}"
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("hostile")
    spare = folder / "spare.json"
    spare.write_text(json.dumps({"*": [{"text": "I step in."}]}))
    script = {"*": [{"fail": {"failure": "quota", "message": HOSTILE}}]}
    with start(folder, config=CONFIG.format(spare=spare), script=script) as running:
        yield running


def unharmed(page: Page) -> None:
    assert page.evaluate("window.owned") is None
    assert (
        page.evaluate(
            "document.querySelectorAll('main script, main img, main iframe, main [href^=javascript]').length"
        )
        == 0
    )
    assert "\u202e" not in read(page.locator("main"))


def test_what_a_provider_says_when_it_fails_stays_text(somebody: Person) -> None:
    _, entries = somebody.daemon.run("hello")
    page = somebody.log_in(f"/#/usage/run/{entries[0]['run_id']}")
    expect(page.get_by_role("table").first).to_contain_text("⟨202E⟩")
    expect(page.get_by_role("list", name="Plans")).to_contain_text(BUTTON)
    expect(page.get_by_role("button", name="Repair")).to_have_count(0)
    unharmed(page)


def test_names_of_people_and_schedules_stay_text(somebody: Person) -> None:
    daemon = somebody.daemon
    used_by(daemon, f"guest {HOSTILE}", 10)
    made = daemon.post(
        "/v1/schedules", {"when": "every day at 9", "text": "look", "name": f"{SCRIPT} {BIDI}"[:90]}
    )
    daemon.post(f"/v1/schedules/{made['schedule']['schedule_id']}/run")
    page = somebody.log_in("/#/usage")
    chosen = page.get_by_role("group", name="By")
    chosen.get_by_role("button", name="User").click()
    expect(page.get_by_role("table", name="Usage by principal")).to_contain_text("⟨202E⟩")
    unharmed(page)
    chosen.get_by_role("button", name="Schedule").click()
    expect(page.get_by_role("table", name="Usage by schedule")).to_contain_text("<img src=x")
    unharmed(page)


def test_a_budget_about_somebody_with_an_odd_name_stays_text(somebody: Person) -> None:
    odd = f"{BIDI}{SCRIPT}"[:100]
    daemon = somebody.daemon
    assert (
        daemon.request(
            "PUT", "/v1/budgets/odd", {"per": "principal", "who": odd, "tokens": 10}
        ).status
        == 200
    )
    page = somebody.log_in("/#/usage")
    budget = page.get_by_role("list", name="Budgets").locator(".card")
    expect(budget).to_contain_text("⟨202E⟩")
    unharmed(page)
    budget.get_by_role("button", name="Edit…").click()
    form = page.get_by_role("form", name="Budget")
    expect(form.get_by_label("Only for")).to_have_value(odd)
    form.get_by_role("button", name="Save changes").click()
    expect(form).to_have_count(0)
    assert daemon.get("/v1/budgets")["budgets"][0]["terms"]["who"] == odd, (
        "what is shown as a mark is kept as it is"
    )
    daemon.request("DELETE", "/v1/budgets/odd")


def test_what_tasks_and_incidents_say_stays_text(somebody: Person) -> None:
    daemon = somebody.daemon
    made = {
        "error": HOSTILE,
        "key": f"k{HOSTILE}",
        "payload": {"said": HOSTILE},
        "kind": f"odd{HOSTILE}",
        "principal": HOSTILE,
    }
    task(daemon, "failed", **made)
    tried = [{"remedy": f"call {HOSTILE}", "result": "failed", "time_ms": 1, "detail": HOSTILE}]
    incident(daemon, f"open {HOSTILE}", fix=HOSTILE, tried=tried)
    incident(daemon, f"closed {HOSTILE}", outcome=HOSTILE, closed_ms=1, opened_ms=1)
    page = somebody.log_in("/#/health")
    page.get_by_role("table", name="Tasks", exact=True).get_by_text("Details").first.click()
    page.get_by_role("group", name="Which incidents").get_by_role("button", name="All").click()
    found = page.get_by_role("list", name="Incidents").locator("> li")
    expect(found).to_have_count(2)
    for each in (
        *found.all(),
        page.get_by_role("table", name="Tasks", exact=True),
        page.get_by_role("table", name="Kinds of tasks"),
    ):
        expect(each).to_contain_text("⟨202E⟩")
        expect(each).to_contain_text(BUTTON)
        expect(each.get_by_role("button", name="Repair", exact=True)).to_have_count(0)
    unharmed(page)
    row = (
        page.get_by_role("table", name="Kinds of tasks")
        .get_by_role("row")
        .filter(has_text="odd<img")
    )
    row.get_by_role("button").click()
    expect(page.get_by_role("alert").or_(row.get_by_text("Paused"))).to_be_visible()
