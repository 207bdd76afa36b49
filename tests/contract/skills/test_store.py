"""Installing, updating, vouching for and removing skills."""

import os
import sys
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from palyra.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from palyra.features.skills import package, tools
from palyra.features.skills.host import World
from palyra.features.skills.records import Record
from palyra.features.skills.store import Proposal, Skills
from palyra.store.row_seals import RowSeals
from palyra.tools.paths import PathGuard
from tests.skills_at_work import ECHO, asking, installed, make
from tests.tools_at_work import tree

KEY = bytes(range(32))
WORLD = World(PathGuard())


@pytest.fixture
def skills(tmp_path: Path) -> Skills:
    return Skills(tmp_path / "skills", now_ms=lambda: 1000)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return make(tmp_path / "source", ECHO)


def offered(skills: Skills) -> list[str]:
    return [tool.spec.name for tool in tools.tools(skills, WORLD)]


def publisher(skills: Skills, key: bytes = KEY, name: str = "maker") -> str:
    public = package.public_key(key)
    skills.publishers.add(name, public)
    return public


def test_installing_shows_what_is_asked_for_and_waits_for_a_yes(
    skills: Skills, tmp_path: Path
) -> None:
    source = make(tmp_path / "source", asking("read_file", "x"), wants={"read": ["notes"]})
    proposal = skills.install(source)
    assert isinstance(proposal, Proposal)
    assert proposal.words == (
        "run: a tool that changes nothing (pure)",
        "run: read notes in the workspace",
    )
    assert (proposal.added, proposal.updates, proposal.state) == (
        proposal.permissions,
        False,
        "quarantined",
    )
    assert skills.all() == []
    record = skills.install(source, confirm=proposal.digest)
    assert isinstance(record, Record)
    assert [listed.record for listed in skills.all()] == [record]


def test_where_the_packages_for_tools_are_missing_it_says_which_and_what_to_do(
    skills: Skills, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wasmtime", None)
    with pytest.raises(Unavailable, match=r"wasmtime.*palyra\[skills\]"):
        skills.look(source)


def test_what_changed_after_it_was_shown_is_not_installed(skills: Skills, source: Path) -> None:
    digest = skills.look(source).digest
    (source / "SKILL.md").write_text("---\nname: subject\ndescription: Another.\n---\nEvil.\n")
    with pytest.raises(Conflict):
        skills.install(source, confirm=digest)
    assert skills.all() == []


def test_instructions_alone_ask_for_nothing_and_still_wait_for_a_yes(
    skills: Skills, tmp_path: Path
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "SKILL.md").write_text("---\nname: plain\ndescription: d\n---\nDo it.\n")
    proposal = skills.install(tmp_path / "plain")
    assert isinstance(proposal, Proposal)
    assert proposal.words == ("nothing: it has instructions only",)


@pytest.mark.parametrize("missing", ["run.wat", "SKILL.md"])
def test_a_skill_with_a_missing_part_is_refused(skills: Skills, source: Path, missing: str) -> None:
    (source / missing).unlink()
    with pytest.raises(InvalidInput):
        skills.look(source)


def test_an_update_that_asks_for_no_more_needs_no_yes_but_is_not_trusted_for_it(
    skills: Skills, source: Path
) -> None:
    installed(skills, source, state="trusted")
    (source / "SKILL.md").write_text("---\nname: subject\ndescription: Better.\n---\nNew text.\n")
    record = skills.install(source)
    assert isinstance(record, Record)
    assert (record.description, record.state, offered(skills)) == ("Better.", "quarantined", [])


@pytest.mark.parametrize(
    ("new", "installed_one", "older"),
    [
        ("1.2.3", "1.3.0", True),
        ("1.9", "1.10", True),
        ("2.0.0-beta.1", "2.0.0", True),
        ("v1.0", "1.0.1", True),
        ("1.3.0", "1.2.3", False),
        ("1.0", "1.0.0", False),
        ("", "1.0", False),
        ("spring", "autumn", False),
    ],
)
def test_an_older_version_waits_for_a_yes_that_knows_it_is_older(
    skills: Skills, source: Path, new: str, installed_one: str, older: bool
) -> None:
    publisher(skills)

    def written(version: str) -> None:
        (source / "SKILL.md").write_text(
            f"---\nname: subject\ndescription: d\nversion: '{version}'\n---\nIt is {version}.\n"
        )
        package.sign(source, KEY)

    written(installed_one)
    installed(skills, source, state=None)
    written(new)
    made = skills.install(source)
    assert isinstance(made, Proposal) == older
    if isinstance(made, Proposal):
        assert made.older_than == installed_one
        assert skills.get("subject").record.version == installed_one
        assert isinstance(skills.install(source, confirm=made.digest), Record)


def test_an_update_that_asks_for_more_asks_again_and_shows_what_is_new(
    skills: Skills, tmp_path: Path, source: Path
) -> None:
    before = installed(skills, source)
    wider = make(tmp_path / "wider", asking("read_file", "x"), wants={"read": ["notes"]})
    proposal = skills.install(wider)
    assert isinstance(proposal, Proposal)
    assert [each.words for each in proposal.added] == ["run: read notes in the workspace"]
    assert skills.get("subject").record == before
    assert isinstance(skills.install(wider, confirm=proposal.digest), Record)


def test_an_update_leaves_nothing_of_the_version_before(
    skills: Skills, tmp_path: Path, source: Path
) -> None:
    installed(skills, source)
    (source / "SKILL.md").write_text("---\nname: subject\ndescription: d\n---\nNew.\n")
    record = skills.install(source)
    assert isinstance(record, Record)
    assert os.listdir(tmp_path / "skills" / "installed") == [record.folder]


def test_installing_the_same_again_keeps_its_state(skills: Skills, source: Path) -> None:
    installed(skills, source, state="trusted")
    again = skills.install(source)
    assert isinstance(again, Record)
    assert (again.state, again.vouched) == ("trusted", "operator")


def test_an_install_that_died_half_way_is_not_there_and_is_swept(
    skills: Skills, tmp_path: Path, source: Path
) -> None:
    left = tmp_path / "skills" / "installed" / ".new-dead"
    left.mkdir(parents=True)
    (left / "SKILL.md").write_text("half")
    assert skills.all() == []
    record = installed(skills, source)
    assert os.listdir(tmp_path / "skills" / "installed") == [record.folder]


def test_an_unsigned_skill_is_not_offered_until_somebody_enables_it(
    skills: Skills, source: Path
) -> None:
    installed(skills, source, state=None)
    assert offered(skills) == []
    skills.set_state("subject", "enabled")
    assert offered(skills) == ["skill.read", "skill:subject/run"]
    skills.set_state("subject", "quarantined")
    assert offered(skills) == []


def test_an_operator_can_try_a_skill_in_quarantine(skills: Skills, source: Path) -> None:
    installed(skills, source, state=None)
    (tool,) = tools.tools_of(skills, skills.get("subject"), WORLD)
    assert tool.spec.yields.integrity == "untrusted"


def test_what_it_says_is_untrusted_until_it_is_trusted(skills: Skills, source: Path) -> None:
    installed(skills, source)
    labels = []
    for state in ("enabled", "trusted"):
        skills.set_state("subject", state)
        labels.append(tools.tools(skills, WORLD)[1].spec.yields)
    assert [(label.integrity, label.sources) for label in labels] == [
        ("untrusted", ("skill:subject",)),
        ("trusted", ()),
    ]


def test_a_generated_skill_starts_in_quarantine_even_if_it_is_signed(
    skills: Skills, source: Path
) -> None:
    publisher(skills)
    package.sign(source, KEY)
    record = skills.install(
        source, confirm=skills.look(source, generated=True).digest, generated=True
    )
    assert isinstance(record, Record)
    assert (record.state, offered(skills)) == ("quarantined", [])


def test_removing_leaves_nothing(skills: Skills, tmp_path: Path, source: Path) -> None:
    installed(skills, source)
    skills.remove("subject")
    assert skills.all() == []
    assert tree(tmp_path / "skills" / "installed") == {}
    with pytest.raises(NotFound):
        skills.remove("subject")


@pytest.mark.parametrize("name", ["..", "../x", "a/b", "", "A"])
def test_a_name_that_is_no_name_reaches_no_file(skills: Skills, name: str) -> None:
    with pytest.raises(InvalidInput):
        skills.remove(name)


def test_a_skill_of_a_trusted_publisher_is_trusted(skills: Skills, source: Path) -> None:
    public = publisher(skills)
    package.sign(source, KEY)
    record = installed(skills, source, state=None)
    assert (record.state, record.vouched, record.signer) == ("trusted", "publisher", public)
    assert (skills.get("subject").publisher, offered(skills)) == (
        "maker",
        ["skill.read", "skill:subject/run"],
    )


def test_a_signature_by_somebody_unknown_lifts_no_quarantine(skills: Skills, source: Path) -> None:
    package.sign(source, KEY)
    assert installed(skills, source, state=None).state == "quarantined"


def test_a_publisher_who_is_not_trusted_any_more_takes_their_skills_along(
    skills: Skills, source: Path
) -> None:
    publisher(skills)
    package.sign(source, KEY)
    installed(skills, source, state=None)
    assert skills.publishers.remove("maker")
    listed = skills.get("subject")
    assert (listed.state, bool(listed.problem), offered(skills)) == ("quarantined", True, [])


def test_an_update_signed_by_another_key_is_not_trusted(skills: Skills, source: Path) -> None:
    publisher(skills)
    package.sign(source, KEY)
    installed(skills, source, state=None)
    (source / "SKILL.md").write_text("---\nname: subject\ndescription: Taken over.\n---\nEvil.\n")
    package.sign(source, bytes(32))
    record = skills.install(source)
    assert isinstance(record, Record)
    assert record.state == "quarantined"


@pytest.mark.parametrize("what", ["changed", "added", "removed", "renamed", "manifest"])
def test_files_that_do_not_fit_their_signature_are_refused(
    skills: Skills, source: Path, what: str
) -> None:
    publisher(skills)
    (source / "notes.md").write_text("n")
    package.sign(source, KEY)
    match what:
        case "changed":
            (source / "run.wat").write_text(ECHO + " ")
        case "added":
            (source / "more.md").write_text("m")
        case "removed":
            (source / "notes.md").unlink()
        case "renamed":
            (source / "notes.md").rename(source / "notes2.md")
        case "manifest":
            (source / "skill.toml").write_text((source / "skill.toml").read_text() + "\n# more\n")
    with pytest.raises(InvalidInput, match="signature"):
        skills.look(source)


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"not json", b'{"key":"AA==","signature":"AA=="}', b"[]", b"\xff"]
)
def test_a_signature_that_cannot_be_read_is_refused_or_none(
    skills: Skills, source: Path, content: bytes
) -> None:
    (source / "skill.sig").write_bytes(content)
    if not content:
        assert skills.look(source).signer == ""
        return
    with pytest.raises(InvalidInput):
        skills.look(source)


def test_the_key_in_the_signature_must_be_the_key_that_signed(skills: Skills, source: Path) -> None:
    public = publisher(skills)
    made = package.sign(source, bytes(32))
    (source / "skill.sig").write_bytes(
        msgspec.json.encode(package.Signature(public, made.signature))
    )
    with pytest.raises(InvalidInput):
        skills.look(source)


@pytest.mark.parametrize("key", ["", "AAAA", "x" * 44, "not base64!"])
def test_a_publishers_key_is_checked(skills: Skills, key: str) -> None:
    with pytest.raises(InvalidInput):
        skills.publishers.add("maker", key)


def test_files_changed_after_the_install_are_not_used(
    skills: Skills, tmp_path: Path, source: Path
) -> None:
    record = installed(skills, source, state="trusted")
    (tmp_path / "skills" / "installed" / record.folder / "SKILL.md").write_text(
        "---\nname: subject\ndescription: d\n---\nEvil.\n"
    )
    listed = skills.get("subject")
    assert (listed.state, "SKILL.md" in listed.problem, offered(skills)) == (
        "quarantined",
        True,
        [],
    )
    with pytest.raises(Conflict):
        skills.set_state("subject", "trusted")
    with pytest.raises(Conflict):
        skills.instructions(record)
    assert skills.install(source) != listed.record
    assert skills.get("subject").problem == ""


def test_a_file_swapped_for_a_link_is_not_used(
    skills: Skills, tmp_path: Path, source: Path
) -> None:
    record = installed(skills, source)
    file = tmp_path / "skills" / "installed" / record.folder / "run.wat"
    (tmp_path / "same").write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(tmp_path / "same")
    assert skills.get("subject").problem


def test_a_record_that_grants_more_than_the_files_say_grants_nothing(
    skills: Skills, tmp_path: Path, source: Path
) -> None:
    record = installed(skills, source)
    file = tmp_path / "skills" / "records" / "subject.json"
    forged = {**record.files, "run.wat": sha256(b"other").hexdigest()}
    file.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, files=forged)))
    assert skills.get("subject").problem


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"name":"subject"}'])
def test_a_record_that_cannot_be_read_stops_nothing_and_can_be_put_right(
    skills: Skills, tmp_path: Path, source: Path, content: bytes
) -> None:
    installed(skills, source)
    (tmp_path / "skills" / "records" / "subject.json").write_bytes(content)
    (listed,) = skills.all()
    assert (listed.state, bool(listed.problem), offered(skills)) == ("quarantined", True, [])
    assert isinstance(skills.install(source), Proposal)
    installed(skills, source)
    assert offered(skills) == ["skill.read", "skill:subject/run"]


def test_a_list_of_publishers_that_cannot_be_read_vouches_for_nobody(
    skills: Skills, tmp_path: Path, source: Path
) -> None:
    publisher(skills)
    package.sign(source, KEY)
    installed(skills, source, state=None)
    (tmp_path / "skills" / "publishers.toml").write_text("not toml")
    assert (skills.get("subject").state, offered(skills)) == ("quarantined", [])
    with pytest.raises(InvalidInput):
        skills.look(source)


def test_a_record_that_somebody_else_wrote_or_changed_enables_nothing(
    tmp_path: Path, source: Path
) -> None:
    seals = RowSeals(KEY)
    skills = Skills(tmp_path / "skills", seals=seals)
    name = installed(skills, source).name
    file = tmp_path / "skills/records" / f"{name}.json"
    skills.set_state(name, "enabled")
    assert offered(skills)
    enabled = msgspec.json.decode(file.read_bytes())
    for forged in (
        enabled | {"state": "trusted"},
        {key: value for key, value in enabled.items() if key != "mac"},
        enabled | {"mac": "00" * 32},
        enabled | {"name": "another"},
    ):
        file.write_bytes(msgspec.json.encode(forged))
        assert offered(Skills(tmp_path / "skills", seals=seals)) == []
        assert skills.get(name).state == "quarantined"
    assert ("skills", name) in seals.refused
    # The record of one skill is none of another's.
    file.with_stem("other").write_bytes(msgspec.json.encode(enabled))
    assert skills.get("other").state == "quarantined"


def test_records_from_before_there_was_a_key_are_sealed_as_they_are(
    tmp_path: Path, skills: Skills, source: Path
) -> None:
    name = installed(skills, source).name
    skills.set_state(name, "enabled")
    sealed = Skills(tmp_path / "skills", seals=RowSeals(KEY, adopts=True))
    assert offered(sealed) == []
    sealed.adopt()
    assert offered(sealed) == offered(skills) != []
    assert offered(Skills(tmp_path / "skills", seals=RowSeals(KEY))) == offered(skills)
