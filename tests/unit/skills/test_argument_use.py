"""A skill's tool says what its arguments are for, as far as its manifest shows."""

from pathlib import Path

from palyra.core.argument_roles import ToolUse
from palyra.features.skills import tools
from palyra.features.skills.host import World
from palyra.features.skills.store import Skills
from palyra.tools.paths import PathGuard
from tests.skills_at_work import ECHO, installed, make


def use_of(folder: Path, name: str, effect: str = "pure") -> ToolUse:
    source = make(folder / "source", ECHO, name="contacts", effect=effect)
    written = source / "skill.toml"
    written.write_text(written.read_text().replace('name = "run"', f'name = "{name}"'))
    skills = Skills(folder / "skills")
    record = installed(skills, source)
    (only,) = tools.tools_of(skills, skills.get(record.name), World(PathGuard()))
    assert only.spec.use is not None
    return only.spec.use


def test_only_a_pure_tool_that_is_not_named_like_a_change_reads_only(tmp_path: Path) -> None:
    tried = (("find", "pure"), ("find", "once"), ("send", "pure"))
    found = [use_of(tmp_path / str(at), *each).reads_only for at, each in enumerate(tried)]
    assert found == [True, False, False]


def test_a_skill_s_results_are_not_the_user_s_address_book(tmp_path: Path) -> None:
    assert not use_of(tmp_path, "find").trusted_results
