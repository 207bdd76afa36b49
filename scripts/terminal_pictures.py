"""Photograph the terminal chat for the documentation, as people see it.

python scripts/terminal_pictures.py      # docs/images/approval.svg and docs/images/terminal.svg

Runs the real chat in tmux against a daemon of its own: the demo model asks for an approval, and a
scripted one says some Markdown. Look at the pictures before you commit them.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests import daemon as daemons  # noqa: E402
from tests.cli_terminal import environment  # noqa: E402

_WAIT_S = 60.0
_SGR = re.compile(r"\x1b\[[0-9;]*m")
_COLORS = ["#282c34", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d6d8dc"]
_BRIGHT = ["#7f848e", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#ffffff"]
PLAN = """\
Here is the plan.

# Plan

The **beds** need water; see [the forecast](https://example.org/weather).

> Water early, before the sun is high.

| bed | plants | litres |
|:----|:------:|-------:|
| north | tomatoes, *basil* | 12 |
| south | beans | 8 |

```python
def water(bed, litres=10):
    \"\"\"Open the valve.\"\"\"
    return valve.open(bed, litres)  # once a day
```

- [x] buy seeds
- [ ] fix the `valve`
"""


class Pane:
    """The chat in a terminal of tmux's own server."""

    def __init__(self, home: Path, folder: Path, columns: int, rows: int) -> None:
        self._tmux = ["tmux", "-L", f"palyra-pictures-{os.getpid()}", "-f", "/dev/null"]
        program = f"{sys.executable} -m palyra.cli.main chat --new"
        self._run(
            *("new-session", "-d", "-s", "chat", "-x", str(columns), "-y", str(rows)),
            *("-c", str(folder), program),
            env=environment(home),
        )

    def _run(self, *arguments: str, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            [*self._tmux, *arguments], env=env, check=True, capture_output=True, text=True
        )
        return done.stdout

    def say(self, text: str) -> None:
        self._run("send-keys", "-t", "chat", "-l", text)
        self._run("send-keys", "-t", "chat", "Enter")

    def until(self, pattern: str) -> str:
        """Wait until the screen shows this; the screen, with its colours."""
        deadline = time.monotonic() + _WAIT_S
        while time.monotonic() < deadline:
            shown = self._run("capture-pane", "-e", "-p", "-t", "chat")
            if re.search(pattern, _SGR.sub("", shown)):
                return shown
            time.sleep(0.1)
        raise TimeoutError(f"{pattern!r} did not appear")

    def close(self) -> None:
        self._run("kill-server")


def picture(shown: str, folder: Path, columns: int) -> str:
    """The screen as an SVG; the folder as its owner names it."""
    lines = shown.replace(str(folder), "~/garden").rstrip("\n").split("\n")
    while lines and not _SGR.sub("", lines[-1]).strip():
        lines.pop()
    theme = TerminalTheme(
        (30, 33, 39), (214, 216, 220), [_rgb(each) for each in _COLORS], [_rgb(e) for e in _BRIGHT]
    )
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        console = Console(
            record=True, width=columns, force_terminal=True, file=nowhere, color_system="standard"
        )
        console.print(Text.from_ansi("\n".join(lines)), soft_wrap=True)
    svg = console.export_svg(title="palyra chat", theme=theme, unique_id="palyra")
    svg = re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", "DejaVu Sans Mono, Menlo, Consolas, monospace")


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def main() -> int:
    if shutil.which("tmux") is None:
        sys.stderr.write("error: tmux is missing: install it, for example apt-get install tmux\n")
        return 1
    images = ROOT / "docs" / "images"
    with tempfile.TemporaryDirectory() as place:
        for name, script in (("approval", None), ("terminal", {"*": [{"text": PLAN}]})):
            with daemons.start(Path(place) / name, script=script) as daemon:
                (daemon.workspace / "notes.md").write_text("# my notes\n\nTODO: buy seeds\n")
                pane = Pane(daemon.home, daemon.workspace, 96, 34)
                try:
                    pane.until("›")
                    if script is None:
                        pane.say("find TODO")
                        pane.until(r"buy seeds\n\n›")
                        pane.say("rename the heading in notes.md to Plans")
                        shown = pane.until(r"\[q\]uit ›")
                    else:
                        pane.say("show me the plan")
                        shown = pane.until(r"fix the valve\n\n›")
                finally:
                    pane.close()
                (images / f"{name}.svg").write_text(picture(shown, daemon.workspace, 96))
                sys.stdout.write(f"docs/images/{name}.svg\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
