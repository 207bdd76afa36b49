"""What a reply can hold: formulas, diagrams, tables, tasks and notes. None of them gets any
rights.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests import console_world
from tests.console_world import say, serious
from tests.daemon import DaemonProcess, start

FORMULAS = r"""Inline $e^{i\pi} + 1 = 0$ and \(\sqrt{x}\), but it costs $5 and $10, or $5-$10.

$$
\int_0^1 x\,dx = \frac{1}{2}
$$

\[ \begin{pmatrix} a & b \\ c & d \end{pmatrix} \]

$$ \frac{open $$

Hostile: $\href{javascript:alert(1)}{\text{click}}$ and $\class{evil}{x}$ and
$\includegraphics{https://example.org/x.png}$ and $\color{red;background:url(x)}{y}$.

The formulas end."""
DIAGRAM = """```mermaid
flowchart LR
  A[Message] --> B{Policy}
```

The diagram ends."""
HOSTILE = """```mermaid
flowchart LR
  A["<img src=x onerror=parent.hit=1><script>parent.hit=1</script>"] --> B[Safe]
  click B "javascript:parent.hit=1"
  click A call hit()
```

```mermaid
flowchart LR
  this is -- not
```

The hostile one ends."""
REST = """| left | right |
|:-----|------:|
| a    | 1     |

- [x] done
- [ ] open[^1]

[^1]: A note.
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    script = {
        "formulas": [{"text": FORMULAS}],
        "diagram": [{"text": DIAGRAM}],
        "hostile": [{"text": HOSTILE}],
        "rest": [{"text": REST}],
    }
    with start(tmp_path_factory.mktemp("content"), script=script) as running:
        yield running


@pytest.fixture
def page(browser: Browser, daemon: DaemonProcess) -> Iterator[Page]:
    with console_world.person(browser, daemon) as somebody:
        yield somebody.log_in()
        # What a frame without rights tries is refused, and the browser says so.
        refused = "Content Security Policy"
        somebody.complaints = [each for each in somebody.complaints if refused not in each]


def test_formulas_become_elements_of_mathml_and_prices_stay_prices(page: Page) -> None:
    say(page, "formulas")
    reply = page.get_by_role("article", name="Palyra")
    expect(reply.get_by_text("The formulas end.")).to_be_visible()
    expect(reply.locator("msqrt")).to_have_count(1)
    expect(reply.locator(".formula mfrac")).to_have_count(1)
    expect(reply.locator("mtd")).to_have_count(4)
    expect(reply).to_contain_text("it costs $5 and $10, or $5-$10.")
    # One that has an error is shown as it was written.
    expect(reply.get_by_text(r"\frac{open", exact=True)).to_be_visible()
    for never in ("a[href^=javascript]", "img", "mglyph", "[href]:not(a)", "[onclick]"):
        expect(reply.locator(never)).to_have_count(0)
    expect(reply.locator("[style*='url(']")).to_have_count(0)
    assert serious(page) == []


def test_a_diagram_is_drawn_in_a_frame_without_rights(page: Page) -> None:
    say(page, "diagram")
    frame = page.frame_locator("iframe[title=Diagram]")
    expect(frame.locator("svg")).to_contain_text("Policy")
    (inside,) = [each for each in page.frames if each.url.endswith("/diagram.html")]
    assert inside.evaluate("origin") == "null"
    refused = "() => fetch('/v1/status').then(() => 'came', () => 'refused')"
    assert inside.evaluate(refused) == "refused"
    stored = "() => { try { return String(localStorage.length) } catch { return 'refused' } }"
    assert inside.evaluate(stored) == "refused"
    page.get_by_role("button", name="Source").click()
    expect(page.locator(".diagram pre")).to_contain_text("A[Message] --> B{Policy}")
    assert serious(page) == []


def test_a_hostile_diagram_reaches_nothing_and_a_wrong_one_is_shown_as_text(page: Page) -> None:
    say(page, "hostile")
    frame = page.frame_locator("iframe[title=Diagram]").first
    expect(frame.locator("svg")).to_contain_text("Safe")
    expect(frame.locator("svg a[href^=javascript], svg script, svg [onerror]")).to_have_count(0)
    expect(page.get_by_text("Cannot draw this diagram: Parse error")).to_be_visible()
    expect(page.locator("pre", has_text="this is -- not")).to_be_visible()
    assert page.evaluate("window.hit") is None


def test_tables_tasks_and_notes_look_as_they_were_meant(page: Page) -> None:
    say(page, "rest")
    reply = page.get_by_role("article", name="Palyra")
    expect(reply.locator("td.a-end")).to_have_text("1")
    expect(reply.get_by_role("img", name="done", exact=True)).to_have_count(1)
    expect(reply.get_by_role("img", name="not done")).to_have_count(1)
    expect(reply.locator(".footnotes")).to_have_text(re.compile(r"1\s*A note\."))


def test_only_the_frame_of_diagrams_may_be_framed_and_by_the_console_alone(
    daemon: DaemonProcess,
) -> None:
    frame, page = daemon.request("GET", "/diagram.html"), daemon.request("GET", "/")
    policy = frame.headers["content-security-policy"]
    here = daemon.url.removeprefix("http://")
    assert policy.startswith(
        "sandbox allow-scripts; default-src 'none';"
        f" script-src 'self' http://{here} https://{here};"
    )
    assert "frame-ancestors 'self'" in policy
    assert "connect-src" not in policy
    assert frame.headers["x-frame-options"] == "SAMEORIGIN"
    assert page.headers["x-frame-options"] == "DENY"
    assert "style-src 'self';" in page.headers["content-security-policy"]
