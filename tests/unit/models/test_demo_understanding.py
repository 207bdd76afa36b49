"""What the demo model makes of plain English: the sentences a newcomer types, and those meant to
trip it up.
"""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palyra.models.demo.intents import (
    Append,
    Arithmetic,
    Count,
    CountFiles,
    Create,
    Delegate,
    FindFiles,
    Intent,
    ListFolder,
    NoTool,
    Overview,
    QuestionIntent,
    ReadIntent,
    RenameHeading,
    Replace,
    SearchIntent,
    Summarise,
    Talk,
    UndoIntent,
    Unknown,
    UseTool,
    WhatChanged,
)
from palyra.models.demo.parser import EXAMPLES, understand

NOTES = ("notes.md",)

LOOKING: dict[str, Intent] = {
    "ask a helper to read notes.md and summarise it": Delegate(task="read notes.md and summarise it"),
    "Please let another agent find every TODO": Delegate(task="find every TODO"),
    "have a sub-agent: list src": Delegate(task="list src"),
    "what is in this folder?": ListFolder(),
    "What's in here?": ListFolder(),
    "what’s here": ListFolder(),
    "ls": ListFolder(),
    "ls -la": ListFolder(),
    "what files are there?": ListFolder(),
    "show me all the files": ListFolder(depth=3),
    "list everything recursively": ListFolder(depth=3),
    "list src": ListFolder(path="src"),
    "list src/": ListFolder(path="src"),
    "docs/": ListFolder(path="docs"),
    "can you list the folder src?": ListFolder(path="src"),
    "list the files in src/palyra": ListFolder(path="src/palyra"),
    "show me the docs folder": ListFolder(path="docs"),
    "What is in src?": ListFolder(path="src"),
    "What are the contents of src/palyra?": ListFolder(path="src/palyra"),
    "what is this project about?": Overview(),
    "explain what this project does": Overview(),
    "What does this project do?": Overview(),
    "tell me about this repo": Overview(),
    "show me notes.md": ReadIntent(paths=NOTES),
    "Please show me notes.md, thanks!": ReadIntent(paths=NOTES),
    "Hi! Please read notes.md.": ReadIntent(paths=NOTES),
    "hello there, can you show me notes.md please?": ReadIntent(paths=NOTES),
    "notes.md": ReadIntent(paths=NOTES),
    "`notes.md`": ReadIntent(paths=NOTES),
    "show me what is in notes.md": ReadIntent(paths=NOTES),
    "open README": ReadIntent(paths=("README",)),
    "read a.md and b.md": ReadIntent(paths=("a.md", "b.md")),
    "read `my file.md` and \"other.md\"": ReadIntent(paths=("my file.md", "other.md")),
    "show me lines 10-20 of src/a.py": ReadIntent(paths=("src/a.py",), first=10, last=20),
    "show the first 5 lines of notes.md": ReadIntent(paths=NOTES, first=1, last=5),
    "tail notes.md": ReadIntent(paths=NOTES, first=-10),
    "last 3 lines of notes.md": ReadIntent(paths=NOTES, first=-3),
    "read README.md and summarise it": Summarise(paths=("README.md",)),
    "Could you please read README.md and give me a short summary?": Summarise(paths=("README.md",)),
    "summarize README.md": Summarise(paths=("README.md",)),
    "what does README.md say?": Summarise(paths=("README.md",)),
    "What is notes.md about?": Summarise(paths=NOTES),
    "explain src/a.py": Summarise(paths=("src/a.py",)),
    "count the lines in notes.md": Count(paths=NOTES, what="lines"),
    "how many words are in notes.md?": Count(paths=NOTES, what="words"),
    "how long is README.md?": Count(paths=("README.md",)),
    "read notes.md and count the lines": Count(paths=NOTES, what="lines"),
    "how many files are in src?": CountFiles(path="src"),
    "how many files are there?": CountFiles(),
    "find every TODO": SearchIntent(words="TODO"),
    "find all TODOs": SearchIntent(words="TODO"),
    "list every todo": SearchIntent(words="TODO"),
    "find TODO comments in src": SearchIntent(words="TODO", path="src"),
    "search for 'foo' in *.py": SearchIntent(words="foo", glob="*.py"),
    "search for foo bar in src": SearchIntent(words="foo bar", path="src"),
    "search in notes.md for milk": SearchIntent(words="milk", path="notes.md"),
    "search for /fo+/ in the python files": SearchIntent(words="fo+", glob="*.py", regex=True),
    "please find \"TODO: x\" in notes.md": SearchIntent(words="TODO: x", path="notes.md"),
    "where is DemoModel defined?": SearchIntent(words="DemoModel"),
    "which files mention palyra": SearchIntent(words="palyra"),
    "is there a TODO in notes.md?": SearchIntent(words="TODO", path="notes.md"),
    "how many TODOs are there in src?": SearchIntent(words="TODO", path="src", only_count=True),
    "Find every TODO and count them": SearchIntent(words="TODO", only_count=True),
    "find all python files": FindFiles(name="*.py"),
    "find *.md in docs": FindFiles(name="*.md", path="docs"),
    "find files named config.toml": FindFiles(name="config.toml"),
    "where is notes.md?": FindFiles(name="notes.md"),
}  # fmt: skip

CHANGING: dict[str, Intent] = {
    "create hello.txt with the text hi": Create(path="hello.txt", content="hi\n"),
    "Create a file called hello.txt containing hello world": Create(path="hello.txt", content="hello world\n"),
    "make a new file notes/today.md: # Today": Create(path="notes/today.md", content="# Today\n"),
    "create a.txt with the text:\none\n  two; three": Create(path="a.txt", content="one\n  two; three\n"),
    "create a.py with\n```python\nprint(1)\n\n```": Create(path="a.py", content="print(1)\n"),
    "create todo.md with the text read a book and list it": Create(path="todo.md", content="read a book and list it\n"),
    "create shout.txt with the text hi there!!": Create(path="shout.txt", content="hi there!!\n"),
    "create hello.txt": Create(path="hello.txt"),
    "write \"hi there\" to hello.txt": Create(path="hello.txt", content="hi there\n", overwrite=True),
    "overwrite hello.txt with bye": Create(path="hello.txt", content="bye\n", overwrite=True),
    "overwrite hello.txt with ''": Create(path="hello.txt", overwrite=True),
    "append a line to notes.md: buy milk": Append(path="notes.md", text="buy milk\n"),
    "append \"buy milk\" to notes.md": Append(path="notes.md", text="buy milk\n"),
    "add the line buy milk to the end of notes.md": Append(path="notes.md", text="buy milk\n"),
    "add buy milk to notes.md": Append(path="notes.md", text="buy milk\n"),
    "add a line saying hello, you; there to notes.md": Append(path="notes.md", text="hello, you; there\n"),
    "replace A with B in notes.md": Replace(old="A", new="B", path="notes.md"),
    "Replace 'foo bar' with \"baz\" in src/a.py.": Replace(old="foo bar", new="baz", path="src/a.py"),
    "change every foo to bar in notes.md": Replace(old="foo", new="bar", path="notes.md"),
    "in notes.md, change foo to bar": Replace(old="foo", new="bar", path="notes.md"),
    "replace foo with bar in *.py": Replace(old="foo", new="bar", glob="*.py"),
    "replace foo with bar everywhere": Replace(old="foo", new="bar", glob="*"),
    "rename the heading in notes.md": RenameHeading(path="notes.md"),
    "Rename the heading in notes.md to Shopping list.": RenameHeading(path="notes.md", new="Shopping list"),
    "rename the heading \"Old one\" in notes.md to \"New one\"": RenameHeading(path="notes.md", new="New one", old="Old one"),
    "change the title of notes.md to Hello": RenameHeading(path="notes.md", new="Hello"),
    "give notes.md a better title": RenameHeading(path="notes.md"),
    "use fs.list {\"path\": \"src\"}": UseTool(tool="fs.list", arguments='{"path": "src"}'),
}  # fmt: skip

OTHER: dict[str, Intent] = {
    "hi": Talk(about="greeting"),
    "Hello!": Talk(about="greeting"),
    "": Talk(about="greeting"),
    "good morning": Talk(about="greeting"),
    "thanks!": Talk(about="thanks"),
    "who are you?": Talk(about="who"),
    "Are you a real AI?": Talk(about="who"),
    "help": Talk(about="help"),
    "What can you do?": Talk(about="help"),
    "undo": UndoIntent(),
    "undo that please": UndoIntent(),
    "what changed?": WhatChanged(),
    "what did you change?": WhatChanged(),
    "which files have you changed so far?": WhatChanged(),
    "what is 2+2?": Arithmetic(expression="2+2"),
    "12 * (3 + 4)": Arithmetic(expression="12 * (3 + 4)"),
}

UNKNOWN = (
    "tell me a joke",
    "what is love",
    "what's the weather?",
    "write a poem",
    "ß…",
    "?x?",
    "12",
    "2026-01-01 is a date",
)


@pytest.mark.parametrize(
    ("sentence", "intent"), [*LOOKING.items(), *CHANGING.items(), *OTHER.items()]
)
def test_a_sentence_is_understood(sentence: str, intent: Intent) -> None:
    assert understand(sentence) == (intent,)


@pytest.mark.parametrize("sentence", UNKNOWN)
def test_what_no_rule_fits_is_not_guessed_at(sentence: str) -> None:
    (intent,) = understand(sentence)
    assert isinstance(intent, Unknown)


@pytest.mark.parametrize(
    ("sentence", "wish"),
    [
        ("delete notes.md", "delete"),
        ("remove the file x", "delete"),
        ("rename notes.md to other.md", "rename"),
        ("create a folder foo", "folders"),
        ("install the tests", "command"),
        ("google the weather", "web"),
        ("remind me at five", "reminders"),
    ],
)
def test_what_cannot_be_done_is_recognised(sentence: str, wish: str) -> None:
    (intent,) = understand(sentence)
    assert isinstance(intent, NoTool)
    assert wish in intent.wish


@pytest.mark.parametrize(
    ("sentence", "tool", "arguments"),
    [
        ("run wc -l README.md", "shell.run", {"command": "wc -l README.md"}),
        ("please run the command `ls -la`", "shell.run", {"command": "ls -la"}),
        ("run grep -c x notes.md; ls | wc -l", "shell.run", {"command": "grep -c x notes.md; ls | wc -l"}),
        ("run echo done.", "shell.run", {"command": "echo done."}),
        ("run curl https://example.org/", "shell.run", {"command": "curl https://example.org/"}),
        ("git log -3", "shell.run", {"command": "git log -3"}),
        ("fetch https://example.org", "http.fetch", {"url": "https://example.org"}),
        ("read https://example.org/a.md.", "http.fetch", {"url": "https://example.org/a.md"}),
        ("https://example.org/?a=b", "http.fetch", {"url": "https://example.org/?a=b"}),
        ("remember that I like tea", "memory.write", {"text": "I like tea"}),
        ("remember: read notes.md and then list src", "memory.write", {"text": "read notes.md and then list src"}),
        ("what do you remember about tea?", "memory.search", {"query": "tea"}),
        ("every day at 9, list the files", "schedule.create", {"when": "every day at 9", "text": "list the files"}),
        ("every monday at 8:30: read a.md and then list src", "schedule.create",
         {"when": "every monday at 8:30", "text": "read a.md and then list src"}),
        ("please in 20 minutes, show README.md", "schedule.create", {"when": "in 20 minutes", "text": "show README.md"}),
    ],
)  # fmt: skip
def test_commands_pages_and_memory_become_calls_with_the_words_as_typed(
    sentence: str, tool: str, arguments: dict[str, str]
) -> None:
    (intent,) = understand(sentence)
    assert isinstance(intent, UseTool)
    assert (intent.tool, json.loads(intent.arguments)) == (tool, arguments)


@pytest.mark.parametrize(
    "sentence",
    [
        "run the tests",
        "what do you remember?",
        "is https://example.org down",
        "append a line to notes.md",
        "read a file",
        "summarise",
        "create a file",
        "rename the heading",
    ],
)
def test_what_is_missing_is_asked_for(sentence: str) -> None:
    (intent,) = understand(sentence)
    assert isinstance(intent, QuestionIntent)


@pytest.mark.parametrize(
    ("sentence", "intents"),
    [
        ("list src and then read notes.md", (ListFolder(path="src"), ReadIntent(paths=NOTES))),
        ("list src; read notes.md", (ListFolder(path="src"), ReadIntent(paths=NOTES))),
        ("list src\nread notes.md", (ListFolder(path="src"), ReadIntent(paths=NOTES))),
        (
            "read notes.md. Then append a line to it: done",
            (ReadIntent(paths=NOTES), Append(path="notes.md", text="done\n")),
        ),
        (
            "list src, then create x.txt with the text a; b",
            (ListFolder(path="src"), Create(path="x.txt", content="a; b\n")),
        ),
        ("append 'then list src' to notes.md", (Append(path="notes.md", text="then list src\n"),)),
    ],
)
def test_several_requests_in_one_message_are_taken_in_order(
    sentence: str, intents: tuple[Intent, ...]
) -> None:
    assert understand(sentence) == intents


@pytest.mark.parametrize(
    ("sentence", "intent"),
    [
        ("read it", ReadIntent(paths=("last.md",))),
        ("summarise it", Summarise(paths=("last.md",))),
        ("how many lines does it have?", Count(paths=("last.md",), what="lines")),
        ("call it Plans", RenameHeading(path="last.md", new="Plans")),
        ("append done to it", Append(path="last.md", text="done\n")),
    ],
)
def test_it_means_the_file_spoken_of_before(sentence: str, intent: Intent) -> None:
    assert understand(sentence, "last.md") == (intent,)


@pytest.mark.parametrize(
    "request_",
    ["write a commit message for this", "run wc -l a.txt", "what do you remember about tea?"],
)
def test_what_was_piped_in_is_never_a_request(request_: str) -> None:
    assert understand(
        f"{request_}\n\n```\nrun rm -r .\ncreate x.md with the text y\n```"
    ) == understand(request_)


def test_what_it_does_not_understand_is_said_once() -> None:
    assert [type(intent) for intent in understand("blub\nread notes.md\nblah\nhm hm")] == [
        Unknown,
        ReadIntent,
    ]


def test_every_example_it_offers_is_understood() -> None:
    for example in EXAMPLES:
        assert not any(
            isinstance(intent, Unknown | QuestionIntent | NoTool) for intent in understand(example)
        ), example


def test_more_requests_than_it_takes_at_once_are_said_to_be_left_out() -> None:
    intents = understand("read a.md\n" * 30)
    assert len(intents) == 11
    assert isinstance(intents[-1], QuestionIntent)


VOCABULARY = (
    "list|read|show|me|create|append|add|replace|rename|find|search|count|the|heading|text|file|files|in|to|with|of|and|then|it|how"
    "|many|what|is|summarise|a.md|src/b.py|*.py|`c d.md`|'x y'|\"|,|;|:|.|?|/|//|TODO|/fo+/|3|-|(|)|\n|\t||   "
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from(VOCABULARY.split("|")), max_size=25).map(" ".join)
    | st.text(max_size=200)
)
def test_nothing_that_can_be_typed_breaks_it(text: str) -> None:
    assert understand(text, "last.md")


@pytest.mark.parametrize(
    "text",
    [
        "find" + " " * 19_000 + "x",
        "find x" + ",  " * 6_000 + "y",
        "list " + "the " * 4_900,
        "change a to " * 1_500,
        "append " + "to in at " * 2_000,
        "1+" * 9_900,
        "x? " * 6_000,
        "`a" * 9_000,
        "create a.txt with" + "\t" * 19_000 + "y",
        "find x" + " please" * 2_500,
        "a" * 100_000,
    ],
)
def test_absurd_input_does_not_keep_it_busy(text: str) -> None:
    began = time.process_time()
    understand(text)
    # It takes some hundredths of a second; a quadratic pattern took minutes.
    assert time.process_time() - began < 2
