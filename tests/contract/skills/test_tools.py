"""Skills as a model meets them: the examples, the Tool port, what host functions give, and how
calls end.
"""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from palyra.core.errors import Conflict, InvalidInput
from palyra.core.ports import CallContext
from palyra.core.tools import Scope, ToolResult, ToolSpec
from palyra.core.verdicts import Allow, Ask, Deny
from palyra.features.skills import tools
from palyra.features.skills.host import Incoming, SecretRequest, SkillRequest, World
from palyra.features.skills.store import Skills
from palyra.policy.store import PolicyStore
from palyra.tools.catalogue import Catalogue, TypedTool
from palyra.tools.paths import PathGuard
from tests import policy_calls
from tests.escapes.world import patience
from tests.skills_at_work import (
    ECHO,
    EXAMPLES,
    answering,
    asking,
    data,
    installed,
    make,
    module,
    outcome,
    packed,
    run,
    tool,
)
from tests.tools_at_work import context, tree

NAMES = [
    "skill.read",
    "skill:slugify/slug",
    "skill:word-count/count",
    "skill:word-count/count_file",
]
CALLS: dict[str, dict[str, Any]] = {
    "skill.read": {"name": "slugify"},
    "skill:slugify/slug": {"text": "Hello, World!"},
    "skill:word-count/count": {"text": "one two"},
    "skill:word-count/count_file": {"path": "notes/a.md"},
}


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "notes").mkdir(parents=True)
    (tmp_path / "ws" / "notes" / "a.md").write_text("# Größe\n\nzwei Wörter")
    return tmp_path / "ws"


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TypedTool]:
    skills = Skills(tmp_path_factory.mktemp("skills"))
    for name in ("slugify", "word-count"):
        installed(skills, EXAMPLES / name)
    return {each.spec.name: each for each in tools.tools(skills, World(PathGuard()))}


def call(
    examples: dict[str, TypedTool], workspace: Path, tool_name: str, /, **arguments: Any
) -> ToolResult:
    one, typed, _ = Catalogue(list(examples.values())).parse(tool_name, arguments)
    return asyncio.run(one.execute(typed, context(workspace)))


@pytest.mark.parametrize(
    ("text", "words", "lines", "characters"),
    [
        ("", 0, 0, 0),
        ("one", 1, 1, 3),
        ("one two\n", 2, 1, 8),
        ("  a\tb\r\nc\n\nd", 4, 4, 11),
        ('quoted "word" and \\ backslash', 5, 1, 29),
        ("Größe 漢字 🎉", 3, 1, 10),
        ("control \x01 \x1f", 3, 1, 11),
        ("long " * 50_000, 50_000, 1, 250_000),
    ],
)
def test_the_word_counter_counts(
    examples: dict[str, TypedTool], ws: Path, text: str, words: int, lines: int, characters: int
) -> None:
    result = call(examples, ws, "skill:word-count/count", text=text)
    assert json.loads(result.text) == {"words": words, "lines": lines, "characters": characters}


def test_the_word_counter_counts_files_it_may_read(
    examples: dict[str, TypedTool], ws: Path
) -> None:
    result = call(examples, ws, "skill:word-count/count_file", path="notes/a.md")
    assert json.loads(result.text) == {"words": 4, "lines": 3, "characters": 20}
    missing = call(examples, ws, "skill:word-count/count_file", path="notes/missing.md")
    assert (missing.outcome, missing.text) == ("error", "the file cannot be read")


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("Hello, World!", "hello-world"),
        ("  --a__b--  ", "a-b"),
        ("My trip to Rome (2026)", "my-trip-to-rome-2026"),
        ("Größe", "gr-e"),
        ('tabs\tand\nlines "quoted" \\', "tabs-and-lines-quoted"),
        ("a\u0001b", "a-b"),
        ("", ""),
        ("漢字", ""),
    ],
)
def test_the_slugifier_makes_slugs(
    examples: dict[str, TypedTool], ws: Path, text: str, slug: str
) -> None:
    assert json.loads(call(examples, ws, "skill:slugify/slug", text=text).text) == {"slug": slug}


def test_a_skill_can_come_as_bytes_instead_of_text(tmp_path: Path) -> None:
    source = make(tmp_path / "source", ECHO, module="run.wasm")
    (source / "run.wasm").write_bytes(wasmtime.wat2wasm(ECHO))
    skills = Skills(tmp_path / "skills")
    installed(skills, source)
    (only,) = tools.tools_of(skills, skills.get("subject"), World(PathGuard()))
    assert run(only, tmp_path, {"a": 1}).text == '{"a":1}'


def test_the_examples_offer_these_tools(examples: dict[str, TypedTool]) -> None:
    assert list(examples) == NAMES


@pytest.mark.parametrize("name", CALLS)
def test_a_good_call_succeeds_and_looking_at_it_changes_nothing(
    examples: dict[str, TypedTool], ws: Path, name: str
) -> None:
    before = tree(ws)
    one, typed, plain = Catalogue(list(examples.values())).parse(name, CALLS[name])
    scope = one.scope(typed, str(ws))
    assert one.preview(typed, str(ws)).title
    assert all(subject.covers(name, scope) for subject in one.subjects(scope))
    assert call(examples, ws, name, **plain).outcome == "ok"
    assert tree(ws) == before


def test_a_declaration_says_what_was_granted(examples: dict[str, TypedTool], ws: Path) -> None:
    count, count_file = (examples[name].spec for name in NAMES[2:])
    assert (count.capabilities, count_file.capabilities) == ((), ("fs.read",))
    assert {(spec.source, spec.tier, spec.effect) for spec in (count, count_file)} == {
        ("skill:word-count", "A", "pure")
    }
    _, typed, _ = Catalogue(list(examples.values())).parse(NAMES[3], CALLS[NAMES[3]])
    assert examples[NAMES[3]].scope(typed, str(ws)).paths == (str(ws / "notes"),)


@pytest.mark.parametrize(
    "arguments", [{}, {"text": 1}, {"text": "x", "more": 1}, {"txt": "x"}, {"text": None}]
)
def test_arguments_that_do_not_fit_the_schema_are_refused(
    examples: dict[str, TypedTool], arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        Catalogue(list(examples.values())).parse("skill:word-count/count", arguments)


def verdict(spec: ToolSpec, scope: Scope) -> type:
    return type(PolicyStore(None, "default").judge(policy_calls.call(spec, scope)))


def test_the_shipped_policy_lets_harmless_tools_run_asks_for_the_network_and_refuses_secrets(
    examples: dict[str, TypedTool], ws: Path
) -> None:
    for name in NAMES:
        one, typed, _ = Catalogue(list(examples.values())).parse(name, CALLS[name])
        assert verdict(one.spec, one.scope(typed, str(ws))) is Allow
    judged = []
    for number, wants in enumerate(
        ({"hosts": ["api.example"]}, {"write": ["notes"]}, {"secrets": ["TOKEN"]})
    ):
        (ws.parent / str(number)).mkdir()
        subject = tool(ws.parent / str(number), ECHO, wants=wants, effect="once")
        judged.append(verdict(subject.spec, subject.scope(subject.parse({})[0], str(ws))))
    assert judged == [Ask, Ask, Deny]


def test_bodies_are_read_only_when_asked_for(examples: dict[str, TypedTool], ws: Path) -> None:
    result = call(examples, ws, "skill.read", name="slugify")
    assert "transliterate" in result.text
    assert result.text.endswith("Files of this skill: slug.wat")
    assert (result.label.integrity, result.label.sources) == ("untrusted", ("skill:slugify",))


def test_without_a_name_the_skills_are_listed(examples: dict[str, TypedTool], ws: Path) -> None:
    result = call(examples, ws, "skill.read")
    assert [line.partition(":")[0] for line in result.text.splitlines()] == [
        "- slugify",
        "- word-count",
    ]
    assert result.label.sources == ("skill:slugify", "skill:word-count")


def test_another_file_of_a_skill_can_be_read_and_nothing_else(
    examples: dict[str, TypedTool], ws: Path
) -> None:
    assert "(module" in call(examples, ws, "skill.read", name="slugify", file="slug.wat").text
    for file in ("../word-count/SKILL.md", "/etc/passwd", "missing.md", "..", "SKILL.md/"):
        assert call(examples, ws, "skill.read", name="slugify", file=file).outcome == "error"


@pytest.mark.parametrize("what", ["quarantined", "removed", "trusted no more"])
def test_a_skill_that_was_judged_anew_meanwhile_is_not_used_as_before(
    tmp_path: Path, what: str
) -> None:
    skills = Skills(tmp_path / "skills")
    installed(
        skills, EXAMPLES / "slugify", state="trusted" if what == "trusted no more" else "enabled"
    )
    offered = {each.spec.name: each for each in tools.tools(skills, World(PathGuard()))}
    match what:
        case "quarantined":
            skills.set_state("slugify", "quarantined")
        case "removed":
            skills.remove("slugify")
        case "trusted no more":
            skills.set_state("slugify", "enabled")
    with pytest.raises(Conflict):
        call(offered, tmp_path, "skill:slugify/slug", text="x")
    told = call(offered, tmp_path, "skill.read", name="slugify")
    assert (
        told.outcome == "error"
        if what != "trusted no more"
        else told.label.integrity == "untrusted"
    )


def test_without_skills_there_are_no_tools_and_nothing_is_loaded(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from palyra.tools.paths import PathGuard
from palyra.features.skills import tools
from palyra.features.skills.host import World
from palyra.features.skills.store import Skills
assert tools.tools(Skills(Path(sys.argv[1])), World(PathGuard())) == ()
print([name for name in ("wasmtime", "jsonschema_rs", "cryptography") if name in sys.modules])
"""
    assert (
        subprocess.check_output([sys.executable, "-c", code, str(tmp_path / "none")], text=True)
        == "[]\n"
    )


def test_a_module_writes_a_file_it_was_granted_and_the_result_says_so(ws: Path) -> None:
    body = "(drop (call $write_file (i32.const 0) (i32.const 9) (i32.const 16) (i32.const 5)))"
    wat = module(
        body + packed(32, 4),
        imports=("write_file",),
        more=data(0, "notes/new") + data(16, "hello") + data(32, '"ok"'),
    )
    subject = tool(ws.parent, wat, wants={"write": ["notes"]}, effect="idempotent")
    assert subject.spec.capabilities == ("fs.write",)
    first, second = run(subject, ws), run(subject, ws)
    assert (ws / "notes" / "new").read_text() == "hello"
    assert [result.data["changes"] for result in (first, second)] == [
        [{"path": "notes/new", "change": "created"}],
        [{"path": "notes/new", "change": "modified"}],
    ]


def test_log_lines_become_progress(tmp_path: Path) -> None:
    wat = answering('"done"', imports=("log",), before="(call $log (i32.const 1024) (i32.const 6))")
    subject = tool(tmp_path, wat)
    heard: list[str] = []

    async def main() -> None:
        told = CallContext(
            principal="user:owner",
            session_id="s",
            run_id="r",
            call_id="c",
            workspace=str(tmp_path),
            progress=heard.append,
        )
        await subject.execute(subject.parse({})[0], told)
        await asyncio.sleep(0)

    asyncio.run(main())
    assert heard == ['"done"']


class _Outside:
    def __init__(self) -> None:
        self.sent: list[tuple[SkillRequest, frozenset[str]]] = []
        self.asked: list[SecretRequest] = []
        self.entered: asyncio.Event | None = None

    async def http(
        self, request: SkillRequest, hosts: frozenset[str], context: CallContext
    ) -> Incoming:
        self.sent.append((request, hosts))
        if self.entered is not None:
            self.entered.set()
            await asyncio.Event().wait()
        return Incoming(200, {"x": "y"}, "body")

    async def secret(self, asked: SecretRequest, context: CallContext) -> str:
        self.asked.append(asked)
        return '"s3cret"'

    def world(self) -> World:
        return World(PathGuard(), self.http, self.secret)


REQUEST = json.dumps(
    {"url": "https://api.example/x", "headers": {"authorization": "Bearer vault:TOKEN"}}
)
WANTS = {"hosts": ["api.example"], "secrets": ["TOKEN"]}


def test_a_request_goes_to_a_granted_host_with_a_secret_that_the_module_never_holds(
    tmp_path: Path,
) -> None:
    outside = _Outside()
    result = outcome(tmp_path, asking("http", REQUEST), outside.world(), wants=WANTS)
    assert json.loads(result.text) == {"status": 200, "headers": {"x": "y"}, "body": "body"}
    ((request, hosts),) = outside.sent
    assert (request.headers, hosts) == (
        {"authorization": 'Bearer "s3cret"'},
        frozenset({"api.example"}),
    )
    assert outside.asked == [SecretRequest("TOKEN", "subject", "skill:subject/run", "api.example")]
    assert (result.label.integrity, result.label.confidentiality, result.label.sources) == (
        "untrusted",
        "public",
        ("https://api.example/",),
    )


def test_a_secret_that_a_module_was_given_makes_its_result_secret(tmp_path: Path) -> None:
    outside = _Outside()
    result = outcome(tmp_path, asking("secret", "TOKEN"), outside.world(), wants=WANTS)
    assert (result.text, result.label.confidentiality) == ("s3cret", "secret")
    assert outside.asked == [SecretRequest("TOKEN", "subject", "skill:subject/run", None)]


def test_where_there_is_no_network_and_no_vault_the_module_is_told(tmp_path: Path) -> None:
    assert outcome(tmp_path, asking("http", REQUEST), wants=WANTS).text == "refused"
    assert outcome(tmp_path, asking("secret", "TOKEN"), wants=WANTS).text == "refused"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ('{"a":[1,2]}', ("ok", '{"a":[1,2]}')),
        ('"plain\\ntext"', ("ok", "plain\ntext")),
        ('{"error":"no"}', ("error", "no")),
    ],
)
def test_a_result_is_the_json_itself_a_text_as_it_is_and_an_error_an_error(
    tmp_path: Path, answer: str, expected: tuple[str, str]
) -> None:
    result = outcome(tmp_path, answering(answer))
    assert (result.outcome, result.text) == expected


@pytest.mark.parametrize("effect", ["pure", "once"])
def test_a_cancel_ends_a_module_that_spins(tmp_path: Path, effect: str) -> None:
    subject = tool(
        tmp_path,
        module("(loop $l (br $l)) (unreachable)"),
        effect=effect,
        limits={"fuel": 20_000_000_000, "time_ms": 60_000},
    )

    async def main() -> float:
        work = asyncio.ensure_future(subject.execute(subject.parse({})[0], context(tmp_path)))
        await asyncio.wait([work], timeout=0.1)
        assert not work.done()
        began = time.monotonic()
        work.cancel()
        await asyncio.wait([work], timeout=10)
        assert work.cancelled()
        return time.monotonic() - began

    assert asyncio.run(main()) < 0.25 * patience()


@pytest.mark.parametrize("how", ["cancel", "time"])
def test_a_module_that_waits_for_the_network_is_ended_too(tmp_path: Path, how: str) -> None:
    outside = _Outside()
    # Time enough to get as far as the network, also on a busy machine.
    limits = {"time_ms": 60_000 if how == "cancel" else 3_000}
    subject = tool(
        tmp_path,
        asking("http", REQUEST),
        outside.world(),
        wants=WANTS,
        effect="once",
        limits=limits,
    )

    async def main() -> None:
        outside.entered = asyncio.Event()
        work = asyncio.ensure_future(subject.execute(subject.parse({})[0], context(tmp_path)))
        await asyncio.wait_for(outside.entered.wait(), 20)
        if how == "cancel":
            work.cancel()
            await asyncio.wait([work], timeout=10)
            assert work.cancelled()
        else:
            assert (await asyncio.wait_for(work, 20)).outcome == "timeout"

    asyncio.run(main())


def test_more_calls_than_slots_all_finish(tmp_path: Path) -> None:
    subject = tool(tmp_path, module("(unreachable)"))

    async def main() -> set[str]:
        results = await asyncio.gather(
            *(subject.execute(subject.parse({})[0], context(tmp_path)) for _ in range(50))
        )
        return {result.outcome for result in results}

    assert asyncio.run(main()) == {"error"}


def test_a_warm_call_takes_at_most_a_millisecond(
    examples: dict[str, TypedTool], tmp_path: Path
) -> None:
    """The figure is the bench's; this holds its order of magnitude, by the best of many, on a busy
    machine.
    """
    one, typed, _ = Catalogue(list(examples.values())).parse(
        "skill:slugify/slug", {"text": "Hello, World!"}
    )

    async def main() -> float:
        best = 1.0
        for _ in range(200):
            began = time.perf_counter()
            await one.execute(typed, context(tmp_path))
            best = min(best, time.perf_counter() - began)
        return best

    assert asyncio.run(main()) < 0.001
