"""skill.toml: what can be asked for, and what counts as asking for more."""

import pytest

from palyra.core.errors import InvalidInput
from palyra.features.skills import manifest
from palyra.features.skills.manifest import Permission

TOOL = '[[tools]]\nname = "t"\ndescription = "d"\nmodule = "t.wasm"\neffect = "once"\n'


def asked(text: str) -> tuple[Permission, ...]:
    return manifest.permissions(manifest.read((TOOL + text).encode()))


def test_permissions_are_everything_a_tool_asks_for_in_words() -> None:
    wants = '[tools.wants]\nhosts = ["api.example:8443"]\nread = ["."]\nwrite = ["out"]\nsecrets = ["TOKEN"]\n'
    text = wants + "[tools.limits]\ntime_ms = 5000\n"
    assert [each.words for each in asked(text)] == [
        "t: a tool that cannot be undone (once)",
        "t: talk to api.example:8443",
        "t: use more than usual: time_ms 5000",
        "t: read every file of the workspace",
        "t: be given the secret TOKEN",
        "t: write out in the workspace",
    ]


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [
        ('read = ["notes"]', 'read = ["notes/deep"]', 0),
        ('read = ["."]', 'read = ["anything"]', 0),
        ('read = ["notes"]', 'read = ["notes2"]', 1),
        ('read = ["notes"]', 'read = ["."]', 1),
        ('read = ["notes"]', 'write = ["notes"]', 1),
        ('hosts = ["a.example"]', 'hosts = ["a.example", "b.example"]', 1),
        ('hosts = ["a.example"]', 'hosts = ["a.example:8443"]', 1),
        ('secrets = ["A"]', 'secrets = ["B"]', 1),
        ('hosts = ["a.example"]', "", 0),
    ],
)
def test_more_is_what_was_not_granted(before: str, after: str, more: int) -> None:
    assert (
        len(manifest.added(asked(f"[tools.wants]\n{before}"), asked(f"[tools.wants]\n{after}")))
        == more
    )


@pytest.mark.parametrize(
    ("before", "after", "more"),
    [(5000, 4000, 0), (5000, 6000, 1), (1000, 2000, 0), (1000, 3000, 1)],
)
def test_a_larger_limit_is_more_and_a_smaller_is_not(before: int, after: int, more: int) -> None:
    added = manifest.added(
        asked(f"[tools.limits]\ntime_ms = {before}"), asked(f"[tools.limits]\ntime_ms = {after}")
    )
    assert len(added) == more


def test_another_effect_is_more_whichever_way_it_goes() -> None:
    pure = manifest.permissions(manifest.read(TOOL.replace("once", "pure").encode()))
    assert len(manifest.added(asked(""), pure)) == len(manifest.added(pure, asked(""))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "tools = 1",
        "unknown = 1",
        TOOL + "unknown = 1",
        TOOL + TOOL,
        TOOL.replace('"t"', '"T/../x"'),
        TOOL.replace('"once"', '"reversible"'),
        TOOL.replace('"t.wasm"', '"t.so"'),
        TOOL.replace('"d"', '"two\\nlines"'),
        TOOL.replace("once", "pure") + '[tools.wants]\nwrite = ["x"]',
        TOOL + '[tools.arguments]\ntype = "array"',
        TOOL + "[tools.limits]\nfuel = 0",
        TOOL + "[tools.limits]\nmemory_bytes = 9999999999",
        TOOL + '[tools.wants]\nread = ["~/x", "a\\\\b"]',
        TOOL + '[tools.wants]\nhosts = ["a.example."]',
        TOOL + '[tools.wants]\nhosts = ["127.0.0.1/24"]',
        TOOL + '[tools.wants]\nenvironment = ["PATH"]',
        "".join(TOOL.replace('"t"', f'"t{number}"') for number in range(40)),
        "[[tools]",
    ],
)
def test_a_manifest_that_is_not_exact_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        manifest.read(text.encode())


def test_arguments_that_do_not_fit_are_refused_by_name() -> None:
    check = manifest.checker(
        "t", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    )
    check({"n": 1})
    with pytest.raises(InvalidInput, match="argument n"):
        check({"n": "one"})
    with pytest.raises(InvalidInput, match="required"):
        check({})


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": "nonsense"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"properties": {"x": {"pattern": "(a"}}},
        {"properties": {"x": {"pattern": "(?=a)b"}}},
    ],
)
def test_a_schema_that_is_wrong_slow_or_leads_elsewhere_is_refused(
    wrong: dict[str, object],
) -> None:
    with pytest.raises(InvalidInput):
        manifest.checker("t", wrong)


def test_a_pattern_that_would_take_forever_elsewhere_takes_no_time() -> None:
    check = manifest.checker("t", {"properties": {"x": {"pattern": "^(a+)+$"}}})
    with pytest.raises(InvalidInput):
        check({"x": "a" * 50_000 + "!"})
