"""The page that checks proof bundles: for anybody, without a login and without the network, and with
the same verdict as the program.
"""

import io
import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from palyra.features.proof import verify_bundle
from tests.console_world import serious
from tests.daemon import DaemonProcess, start
from tests.e2e.proof.test_bundle import CHANGES

Bundle = dict[str, Any]
_MUTATIONS = 240
# Drops each file as somebody would, and gives the verdicts in their order.
_JUDGE = """async (files) => {
  const input = document.getElementById("file"), found = document.getElementById("found");
  const verdicts = [];
  for (const [name, text] of files) {
    const held = new DataTransfer();
    held.items.add(new File([text], name));
    input.files = held.files;
    input.dispatchEvent(new Event("change"));
    const judged = () => found.querySelector(".badge") && found.querySelector("bdi").textContent === name;
    while (!judged()) await new Promise((done) => new MutationObserver((_, it) => { it.disconnect(); done(); }).observe(found, {childList: true}));
    verdicts.push([found.querySelector(".badge").textContent, found.querySelector("ul").innerText]);
  }
  return verdicts;
}"""


class World:
    """A daemon, its key, and bundles of what it did."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self.daemon = daemon
        session, entries = daemon.run("hello")
        run = next(each["run_id"] for each in entries if each.get("run_id"))
        positions = [each["position"] for each in entries]
        daemon.post("/v1/journal/checkpoint")
        self.key = str(daemon.get("/v1/journal/checkpoint")["keys"][0])
        without = f"without={positions[2]}"
        self.bundles: dict[str, Bundle] = {
            name: daemon.get(f"/v1/journal/bundle?{query}")
            for name, query in (
                ("session", f"session_id={session}"),
                ("run", f"run_id={run}"),
                ("sealed", f"session_id={session}&bodies=false"),
                ("positions", f"first={positions[0]}&last={positions[-1]}&{without}"),
            )
        }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("verifier")
    with start(folder, script={"*": [{"text": "good day, <b>ümlaut</b>"}]}) as daemon:
        yield World(daemon)


@pytest.fixture
def page(browser: Browser, world: World) -> Iterator[Page]:
    """A stranger's browser: no cookie, no token."""
    with browser.new_context() as context:
        page = context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(f"{world.daemon.url}/verify")
        yield page
        assert wrong == []


def drop(page: Page, name: str, text: str) -> None:
    page.locator("#file").set_input_files(
        {"name": name, "mimeType": "application/json", "buffer": text.encode()}
    )


def by_program(folder: Path, text: str, *keys: str) -> tuple[bool, list[str]]:
    """The verdict of verify_bundle.py, and what it says."""
    path = folder / "bundle.json"
    path.write_text(text, encoding="utf-8")
    said = io.StringIO()
    arguments = [str(path), *(each for key in keys for each in ("--key", key))]
    with redirect_stdout(said):
        proven = verify_bundle.main(arguments) == 0
    lines = said.getvalue().partition("PROVEN: ")[2].splitlines()
    return proven, [line.strip() for line in lines if "WARNING" not in line]


def by_page(page: Page, texts: list[str], *keys: str) -> list[tuple[bool, list[str]]]:
    page.get_by_label("Key of the journal").fill("\n".join(keys))
    files = [[f"{number}.json", text] for number, text in enumerate(texts)]
    return [(badge == "Proven", said.splitlines()) for badge, said in page.evaluate(_JUDGE, files)]


def test_a_stranger_sees_what_a_bundle_proves_and_nothing_leaves_the_page(
    page: Page, world: World
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    drop(page, "run.json", json.dumps(world.bundles["run"]))
    found = page.get_by_role("status", name="Result")
    expect(found.locator(".badge.good")).to_have_text("Proven")
    expect(found).to_contain_text("the run is complete")
    expect(found).to_contain_text("The key is the bundle's own claim")
    page.get_by_label("Key of the journal").fill(world.key)
    expect(found).not_to_contain_text("own claim")
    expect(found.locator(".badge.good")).to_have_text("Proven")
    row = found.get_by_role("row").filter(has_text="run.completed")
    row.get_by_text("Show").click()
    expect(row).to_contain_text("good day, <b>ümlaut</b>")
    assert serious(page) == []
    drop(page, "sealed.json", json.dumps(world.bundles["sealed"]))
    expect(found).to_contain_text("sealed.json")
    expect(found.get_by_text("Left out; its hash is proven").first).to_be_visible()
    page.get_by_label("Key of the journal").fill(
        "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx"
    )
    expect(found.locator(".badge.bad")).to_have_text("Not proven")
    expect(found).to_contain_text("not signed by a key that is trusted")
    assert serious(page) == []
    # A browser may ask for the icon of a page after the page is there.
    assert [each for each in asked if "/assets/icon" not in each] == []
    refused = page.evaluate("fetch('/healthz').then(() => 'sent', () => 'refused')")
    assert refused == "refused"


def test_the_page_allows_itself_nothing(world: World) -> None:
    answer = world.daemon.request("GET", "/verify", token="")
    policy = answer.headers["content-security-policy"]
    assert "connect-src 'none'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_what_was_dropped_before_and_is_judged_later_says_nothing(page: Page, world: World) -> None:
    drop(page, "sound.json", json.dumps(world.bundles["session"]))
    drop(page, "none.json", "no JSON")
    found = page.get_by_role("status", name="Result")
    expect(found).to_contain_text("Not proven none.json")
    expect(found).to_contain_text("the bundle cannot be read")
    drop(page, "hostile.json", json.dumps({"format": "<img src=x onerror=alert(1)>\u202e"}))
    expect(found).to_contain_text("no proof bundle of a known version")


def tampered(world: World) -> Iterator[tuple[str, str]]:
    for name, change in CHANGES.items():
        bundle = json.loads(json.dumps(world.bundles["session"]))
        change(bundle)
        yield name, json.dumps(bundle)
    swapped = json.loads(json.dumps(world.bundles["sealed"]))
    entries = swapped["entries"]
    entries[2]["body_sha256"] = entries[3]["body_sha256"]
    yield "another body's hash", json.dumps(swapped)


def test_sound_and_tampered_bundles_are_judged_as_by_the_program(
    page: Page, world: World, tmp_path: Path
) -> None:
    for keys in ((), (world.key,)):
        sound = [json.dumps(each) for each in world.bundles.values()]
        expected = [by_program(tmp_path, each, *keys) for each in sound]
        assert all(proven for proven, _ in expected)
        assert by_page(page, sound, *keys) == expected
    names, texts = zip(*tampered(world), strict=True)
    assert len(names) > 20
    for name, text, found in zip(names, texts, by_page(page, list(texts), world.key), strict=True):
        expected_one = by_program(tmp_path, text, world.key)
        assert expected_one[0] is False, name
        assert found == expected_one or "cannot be read" in expected_one[1][0], (name, found)
        assert found[0] is False, name


_ODD: tuple[Any, ...] = (None, True, False, 0, 1, 1.0, -1, 1 << 60, "", "x", [], {}, [1], "\ud800")


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys = value if isinstance(value, dict) else range(len(value)) if type(value) is list else ()
    for key in keys:
        yield (*path, key)
        yield from _places(value[key], (*path, key))


def _mutate(bundle: Bundle, rng: random.Random) -> None:
    """Change one thing, anywhere: a value, its type, its place, or whether it is there."""
    *above, key = rng.choice(list(_places(bundle)))
    holder: Any = bundle
    for each in above:
        holder = holder[each]
    value = holder[key]
    ways: list[Callable[[], Any]] = [lambda: rng.choice(_ODD)]
    if isinstance(value, str) and value:
        at = rng.randrange(len(value))
        ways += [
            lambda: value[:at] + rng.choice(" \n\t+=A0\u2028") + value[at:],
            lambda: value[:at] + value[at + 1 :],
            value.upper,
            lambda: value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :],
        ]
    if type(value) is int:
        ways += [lambda: value + rng.choice((-1, 1)), lambda: float(value), lambda: str(value)]
    if type(value) is list and value:
        ways += [lambda: value[:-1], lambda: [*value, value[0]], lambda: value[::-1]]
    if rng.random() < 0.15:
        del holder[key]
    else:
        holder[key] = rng.choice(ways)()


def test_a_bundle_that_was_changed_anyhow_is_judged_alike(
    page: Page, world: World, tmp_path: Path
) -> None:
    """What changes nothing that counts, as the time a bundle was made, both pass; the rest neither."""
    rng = random.Random(17)
    texts = []
    for _ in range(_MUTATIONS):
        bundle = json.loads(json.dumps(rng.choice(list(world.bundles.values()))))
        for _ in range(rng.choice((1, 1, 2))):
            _mutate(bundle, rng)
        texts.append(json.dumps(bundle))
    whole = json.dumps(world.bundles["run"])
    texts += [f"\ufeff{whole}", whole + "x", whole[:-1], "", "null", "[]", "1"]
    texts += [
        re.sub(r'"made_ms": \d+', f'"made_ms": {odd}', whole) for odd in ("NaN", "1e3", "1.5")
    ]
    for keys in ((), (world.key,)):
        expected = [by_program(tmp_path, each, *keys) for each in texts]
        found = by_page(page, texts, *keys)
        for text, program, browser in zip(texts, expected, found, strict=True):
            assert browser[0] == program[0], (program, browser, text[:2_000])
            assert not program[0] or browser == program
        assert 0 < sum(proven for proven, _ in expected) < len(texts) / 2
