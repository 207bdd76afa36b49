"""The tasks for real models count what was done, and nothing that was only said."""

import subprocess
from pathlib import Path

from scripts.model_tasks import FILES, README, README_FILES, TASKS, Done, furnish

# A command that does the task, and an answer; in the order of the tasks.
SOLUTIONS = (
    ("ls", "notes.txt, colour.txt"),
    ("ls src", "hello.py"),
    ("ls", "todo.md and four more"),
    ("ls", "Yes."),
    ("cat notes.txt", "40 crowns"),
    ("cat notes.txt", "Willy"),
    ("cat config.ini", "8080"),
    ("cat src/hello.py", "hello"),
    ("cat todo.md", "buy milk, call Anna"),
    ("sed -i s/red/blue/ colour.txt", ""),
    ("sed -i s/8080/9090/ config.ini", ""),
    ("echo '- water plants' >> todo.md", ""),
    ("echo hi > hi.txt", ""),
    ("seq 5 > numbers.txt", ""),
    ("touch made.txt", ""),
    ("python3 src/hello.py", "hello"),
    ("wc -l notes.txt", "2"),
    ("mkdir out && echo ok > out/done.txt", ""),
    ("cp colour.txt copy.txt", ""),
    ("rm colour.txt && ls", ""),
)


def test_each_task_counts_when_it_is_done_and_not_when_it_is_only_said(tmp_path: Path) -> None:
    assert len(TASKS) == len(SOLUTIONS) == 20
    for task, (command, answer) in zip(TASKS, SOLUTIONS, strict=True):
        furnish(tmp_path, FILES)
        assert not task.good(Done(tmp_path, (), answer)), task.says
        subprocess.run(command, shell=True, cwd=tmp_path, check=True, capture_output=True)
        assert task.good(Done(tmp_path, ("shell.run",), answer)), task.says


# The tool that ran, what else makes it true, and the answer; in the order of the README.
EXAMPLES = (
    ("fs.list", "", "notes.txt and more"),
    ("fs.search", "", "README.md: TODO: paint the boat"),
    ("fs.write", "echo hi > hello.txt", ""),
    ("shell.run", "", "3 README.md"),
    ("memory.write", "", ""),
    ("http.fetch", "", ""),
)


def test_the_readmes_examples_are_those_of_the_readme_and_count_when_done(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "README.md").read_text()
    assert [task.says for task in README if f"`{task.says}`" not in page] == []
    call = {"tool": "http.fetch", "arguments": {"url": "https://example.org/"}}
    for task, (tool, command, answer) in zip(README, EXAMPLES, strict=True):
        furnish(tmp_path, README_FILES)
        assert not task.good(Done(tmp_path, (), answer)), task.says
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
        assert task.good(Done(tmp_path, (tool,), answer, (call,))), task.says
