"""After untrusted content, writing a file that other programs obey asks, under every preset and
whatever was granted before.
"""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core.labels import CLEAN, Label, private
from palyra.core.tools import Subject, ToolSpec
from palyra.core.verdicts import Ask, Grant, Question, Verdict, word
from palyra.policy import grants
from palyra.policy.grants import always_policy
from palyra.policy.judge import judge
from palyra.policy.policy_set import PRESETS
from palyra.policy.reports import explain
from palyra.policy.store import load
from tests.policy_calls import (
    FETCH,
    MCP,
    PATCH,
    READ,
    RECALL,
    SEND,
    SESSION,
    SHELL,
    SKILL,
    UNLOCK,
    WORKSPACE,
    call,
    scope,
    tool,
)

SETS = {preset: load(None, preset) for preset in PRESETS}
WRITE = tool("fs.write", "reversible", "fs.write")
WRITING_SKILL = tool("skill:notes/keep", "idempotent", "fs.write", source="skill:notes")
WEB = Label(integrity="untrusted", sources=("https://example.org/a",))
OBEYED = (
    *(
        "AGENTS.md",
        "CLAUDE.md",
        "conftest.py",
        "package.json",
        ".github/workflows/ci.yml",
        ".vscode/tasks.json",
        ".husky/pre-commit",
    ),
    *(
        "Makefile",
        "sub/.envrc",
        ".npmrc",
        "src/vite.config.ts",
        "pyproject.toml",
        ".gitattributes",
        "a/b/GNUmakefile",
        "agents.MD",
    ),
)
ORDER = ("allow", "ask", "deny")


def write(*names: str, what: ToolSpec = WRITE, label: Label = WEB) -> Question:
    return call(what, scope(*(f"{WORKSPACE}/{name}" for name in names)), label=label)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("name", OBEYED)
def test_it_asks_under_every_preset(preset: str, name: str) -> None:
    expected = "deny" if preset == "locked" else "ask"
    assert word(judge(SETS[preset], write(name))) == expected
    assert word(judge(SETS[preset], write("src/a.py", name, what=PATCH))) == expected


@pytest.mark.parametrize("name", OBEYED)
def test_before_untrusted_content_and_for_other_files_nothing_changes(name: str) -> None:
    assert word(judge(SETS["coding"], write(name, label=CLEAN))) == "allow"
    assert word(judge(SETS["coding"], write("src/a.py"))) == "allow"
    assert word(judge(SETS["coding"], write(name, what=READ))) == "allow"


def test_the_question_says_who_would_obey_the_file_and_what_was_read() -> None:
    verdict = judge(SETS["coding"], write("package.json"))
    assert isinstance(verdict, Ask)
    assert verdict.risk == "high"
    assert (
        "npm, yarn, pnpm or Bun would obey package.json after untrusted content from https://example.org/a"
        in verdict.reason
    )
    shown = str(explain(SETS["coding"], write("package.json")))
    assert "forbid labels-obeyed-files-ask" in shown
    assert "obeyed_by = [npm, yarn, pnpm or Bun]" in shown


def test_a_workspace_inside_such_a_folder_is_not_all_of_it() -> None:
    where = msgspec.structs.replace(
        scope("/home/me/.cursor/worktrees/x/src/a.py"), workspace="/home/me/.cursor/worktrees/x"
    )
    assert word(judge(SETS["coding"], call(WRITE, where, label=WEB))) == "allow"


def test_a_skill_that_may_write_anywhere_asks() -> None:
    permitted = SETS["coding"].plus(
        "mine.cedar", '@id("mine") permit (principal, action, resource);'
    )
    assert word(judge(permitted, write("notes", what=WRITING_SKILL, label=CLEAN))) == "allow"
    assert word(judge(permitted, write("notes", what=WRITING_SKILL))) == "ask"


def granted(kind: str, value: str = "", *, seen: Label = WEB, what: str = "fs.write") -> Grant:
    subject = msgspec.convert({"tool": what, "kind": kind, "value": value}, Subject)
    return Grant(
        subject=subject, principal="user:owner", approval_id="A1", session_id=SESSION, seen=seen
    )


@pytest.mark.parametrize(
    ("grant", "covers"),
    [
        (granted("tool"), False),
        (granted("path_prefix", WORKSPACE), False),
        (granted("path_prefix", f"{WORKSPACE}/package.json"), True),
        (granted("path_prefix", f"{WORKSPACE}/package.json", seen=CLEAN), False),
        (granted("path_prefix", f"{WORKSPACE}/AGENTS.md"), False),
    ],
)
def test_only_a_grant_that_names_the_file_spares_the_question(grant: Grant, covers: bool) -> None:
    assert (grants.covering([grant], write("package.json")) is not None) == covers


def test_a_yes_to_a_skill_holds_after_its_own_words_and_not_after_others() -> None:
    yes = granted("tool", seen=CLEAN, what=WRITING_SKILL.name)
    own = Label(integrity="untrusted", sources=("skill:notes",))
    assert grants.covering([yes], write("notes", what=WRITING_SKILL, label=own)) is not None
    assert grants.covering([yes], write("notes", what=WRITING_SKILL)) is None


def test_an_answer_for_always_does_not_spare_it() -> None:
    text = always_policy(Subject("fs.write", "tool"), "user:owner", "A1", 0)
    assert word(judge(SETS["default"].plus("always.cedar", text), write("src/a.py"))) == "allow"
    assert word(judge(SETS["default"].plus("always.cedar", text), write("AGENTS.md"))) == "ask"


def test_what_comes_from_a_worker_asks_whatever_was_read() -> None:
    remote = tool("worker:attic/shell.run", "once", "process", "fs.write", source="worker:attic")
    permitted = SETS["coding"].plus(
        "mine.cedar", '@id("mine") permit (principal, action, resource);'
    )
    named = call(remote, scope(f"{WORKSPACE}/AGENTS.md", command="make [files: AGENTS.md]"))
    assert word(judge(permitted, call(remote, scope(f"{WORKSPACE}/out")))) == "allow"
    assert word(judge(permitted, named)) == "ask"
    assert grants.covering([granted("tool", what=remote.name)], named) is None
    assert (
        grants.covering([granted("command", "make [files: AGENTS.md]", what=remote.name)], named)
        is not None
    )


TOOLS = (READ, PATCH, WRITE, SHELL, FETCH, RECALL, SEND, UNLOCK, MCP, SKILL, WRITING_SKILL)
NAMES = st.sampled_from((*OBEYED, "src/a.py", "README.md", "."))
LABELS = st.sampled_from((CLEAN, private("file:a"), Label(confidentiality="secret")))
GRANTS = st.lists(
    st.builds(
        lambda what, kind, name, seen: Grant(
            subject=msgspec.convert(
                {
                    "tool": what.name,
                    "kind": kind,
                    "value": "" if kind == "tool" else f"{WORKSPACE}/{name}",
                },
                Subject,
            ),
            principal="user:owner",
            approval_id="A",
            session_id=SESSION,
            seen=seen,
        ),
        st.sampled_from(TOOLS),
        st.sampled_from(("tool", "path_prefix")),
        NAMES,
        st.sampled_from((CLEAN, WEB)),
    ),
    max_size=3,
)


def decided(preset: str, question: Question, held: list[Grant]) -> int:
    verdict: Verdict = judge(SETS[preset], question)
    if (
        isinstance(verdict, Ask)
        and grants.covering(held, question, sends_private=verdict.sends_private) is not None
    ):
        return ORDER.index("allow")
    return ORDER.index(word(verdict))


@given(
    st.sampled_from(PRESETS), st.sampled_from(TOOLS), st.lists(NAMES, max_size=3), LABELS, GRANTS
)
def test_untrusted_content_never_turns_a_question_into_an_allow(
    preset: str, what: ToolSpec, names: list[str], label: Label, held: list[Grant]
) -> None:
    paths = tuple(f"{WORKSPACE}/{name}".removesuffix("/.") for name in names)
    before = call(what, scope(*paths, hosts=("example.org",) if what is FETCH else ()), label=label)
    after = msgspec.structs.replace(
        before, label=msgspec.structs.replace(label, integrity="untrusted", sources=WEB.sources)
    )
    assert decided(preset, after, held) >= decided(preset, before, held)
