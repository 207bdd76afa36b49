"""Skills through the doors of a real daemon: HTTP and the command line. Hostile archives leave
nothing behind at either of them.
"""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import daemon as daemons
from tests.cli_terminal import palyra, terminal
from tests.contract.skills.test_archives import archive, special
from tests.daemon import DaemonProcess, Response
from tests.skills_at_work import ECHO, EXAMPLES, asking, make
from tests.tools_at_work import tree

CONFIG = "[limits]\nrequests_per_second = 100000\n"
MANIFEST = b'[[tools]]\nname="r"\ndescription="d"\nmodule="run.wat"\neffect="pure"\n'
HOSTILE: dict[str, tuple[bytes, str]] = {
    "a name that leads out": (archive(("../evil", b"x")), "invalid_input"),
    "an absolute name": (archive(("/tmp/evil", b"x")), "invalid_input"),
    "a link": (archive((special("link", stat.S_IFLNK | 0o777), b"/etc/passwd")), "invalid_input"),
    "a link and a file through it": (
        archive((special("a", stat.S_IFLNK | 0o777), b"/tmp"), ("a/evil", b"x")),
        "invalid_input",
    ),
    "a device": (archive((special("dev", stat.S_IFCHR | 0o666), b"")), "invalid_input"),
    "names that differ in case only": (archive(("a.md", b"x"), ("A.md", b"y")), "invalid_input"),
    "a bomb": (archive(("bomb", bytes(40 << 20))), "limit_exceeded"),
    "many files": (archive(*((f"f{number}", b"") for number in range(600))), "limit_exceeded"),
    "no zip at all": (b"PK\x03\x04 not really", "invalid_input"),
    "no skill in it": (archive(head=None), "invalid_input"),
    "a module that is none": (
        archive(
            ("run.wat", b"(module"),
            (
                "skill.toml",
                b'[[tools]]\nname="r"\ndescription="d"\nmodule="run.wat"\neffect="pure"\n',
            ),
        ),
        "invalid_input",
    ),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    with daemons.start(
        tmp_path_factory.mktemp("skills"), config=CONFIG, script={"*": [{"text": "hello"}]}
    ) as process:
        yield process


def send(
    served: DaemonProcess, data: bytes, confirm: str = "", media: str = "application/zip"
) -> Response:
    query = f"?confirm={confirm}" if confirm else ""
    return served.request(
        "POST", f"/v1/skill-archives{query}", data, headers={"Content-Type": media}
    )


def skills(served: DaemonProcess, *arguments: str, code: int = 0) -> str:
    done = palyra(served.home, "skills", *arguments, cwd=served.workspace)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def as_json(served: DaemonProcess, *arguments: str) -> Any:
    done = palyra(served.home, "skills", *arguments, "--json", cwd=served.workspace)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def offered(served: DaemonProcess) -> list[str]:
    return [
        tool["name"]
        for tool in served.get("/v1/tools")["tools"]
        if tool["name"].startswith("skill")
    ]


def kept(served: DaemonProcess) -> dict[str, bytes | str]:
    """What is in the skills folder, but for compiled modules and the lock."""
    found = tree(served.home / "skills")
    return {
        name: content
        for name, content in found.items()
        if not name.startswith("compiled") and name != "lock"
    }


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_archive_is_refused_over_http_and_leaves_nothing(
    served: DaemonProcess, tmp_path: Path, what: str
) -> None:
    data, code = HOSTILE[what]
    before = (kept(served), served.get("/v1/skills"), sorted(os.listdir(served.home)))
    for confirm in ("", "0" * 64):
        assert send(served, data, confirm).code == code
    (tmp_path / "evil.zip").write_bytes(data)
    assert served.request("POST", "/v1/skills", {"path": str(tmp_path / "evil.zip")}).code == code
    assert (kept(served), served.get("/v1/skills"), sorted(os.listdir(served.home))) == before


@pytest.mark.parametrize(
    "what", ["a name that leads out", "a link and a file through it", "a bomb", "no zip at all"]
)
def test_a_hostile_archive_is_refused_on_the_command_line_and_leaves_nothing(
    served: DaemonProcess, tmp_path: Path, what: str
) -> None:
    (tmp_path / "evil.zip").write_bytes(HOSTILE[what][0])
    before = (kept(served), tree(tmp_path))
    said = skills(
        served,
        "install",
        str(tmp_path / "evil.zip"),
        "--yes",
        "0" * 64,
        code=1 if what == "a bomb" else 2,
    )
    assert said.startswith("error: ")
    assert (kept(served), tree(tmp_path)) == before


def test_an_archive_over_the_limit_or_of_another_kind_is_not_taken(served: DaemonProcess) -> None:
    assert send(served, bytes((16 << 20) + 1)).status == 413
    assert send(served, b"{}", media="application/json").status == 415


@pytest.mark.parametrize(
    "path",
    ["relative", "/does/not/exist", "/dev/zero", "/proc/self/mem", "/", "/etc/passwd", "/x\0y"],
)
def test_a_path_that_is_no_skill_is_refused_in_words(served: DaemonProcess, path: str) -> None:
    refused = served.request("POST", "/v1/skills", {"path": path})
    assert (refused.status, refused.code in ("invalid_input", "limit_exceeded")) in (
        (400, True),
        (429, True),
    )


def test_a_pipe_is_not_waited_for(served: DaemonProcess, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert (
        served.request("POST", "/v1/skills", {"path": str(tmp_path / "pipe")}).code
        == "invalid_input"
    )


def test_only_the_owner_changes_skills(served: DaemonProcess) -> None:
    token = served.post("/v1/tokens", {"name": "op", "scope": "operator"})["token"]
    for method, path, body in (
        ("POST", "/v1/skills", {"path": str(EXAMPLES / "slugify")}),
        ("DELETE", "/v1/skills/slugify", None),
        ("POST", "/v1/skills/slugify/state", {"state": "trusted"}),
        ("POST", "/v1/publishers", {"name": "x", "key": "y"}),
        ("DELETE", "/v1/publishers?name=x", None),
    ):
        assert served.request(method, path, body, token=token).status == 403
    assert served.request("GET", "/v1/skills", token=token).status == 200


def test_installing_over_http_takes_the_digest_of_what_was_shown(served: DaemonProcess) -> None:
    data = archive(
        ("references/a.md", b"more"), head=b"---\nname: two-steps\ndescription: Sent.\n---\nBody.\n"
    )
    shown = send(served, data)
    assert shown.status == 200
    proposal = shown.json
    assert (proposal["name"], proposal["updates"], proposal["permissions"]) == (
        "two-steps",
        False,
        [],
    )
    assert served.request("GET", "/v1/skills/two-steps").status == 404
    other = archive(head=b"---\nname: two-steps\ndescription: Other.\n---\nBody.\n")
    assert send(served, other, proposal["digest"]).code == "conflict"
    made = send(served, data, proposal["digest"])
    assert (made.status, made.json["skill"]["state"], made.json["instructions"]) == (
        201,
        "quarantined",
        "Body.",
    )
    exported = served.request("GET", "/v1/skills/two-steps/export")
    assert exported.headers["content-type"] == "application/zip"
    assert send(served, exported.body).json["digest"] == proposal["digest"]
    assert served.request("DELETE", "/v1/skills/two-steps").status == 204
    assert not [name for name in kept(served) if "two-steps" in name]


def test_a_skill_in_quarantine_is_not_offered_and_one_that_is_enabled_is(
    served: DaemonProcess,
) -> None:
    digest = as_json(
        served,
        "install",
        str(EXAMPLES / "slugify"),
        "--yes",
        _fingerprint(served, EXAMPLES / "slugify"),
    )
    assert digest["skill"]["state"] == "quarantined"
    assert offered(served) == []
    skills(served, "enable", "slugify")
    assert offered(served) == ["skill.read", "skill:slugify/slug"]
    skills(served, "quarantine", "slugify")
    assert offered(served) == []
    assert as_json(served, "show", "slugify")["tools"][0]["name"] == "slug"
    skills(served, "remove", "slugify")
    assert as_json(served, "list") == {"skills": []}


def _fingerprint(served: DaemonProcess, source: Path) -> str:
    return str(served.post("/v1/skills", {"path": str(source)})["digest"])


def test_without_a_terminal_nothing_is_installed_without_its_fingerprint(
    served: DaemonProcess, tmp_path: Path
) -> None:
    source = make(tmp_path / "source", ECHO, name="careful")
    said = skills(served, "install", str(source), code=6)
    assert "run: a tool that changes nothing (pure)" in said
    assert f"--yes {_fingerprint(served, source)[:16]}" in said
    refused = palyra(served.home, "skills", "install", str(source), "--json")
    assert json.loads(refused.stderr)["error"]["details"]["permissions"] == [
        "run: a tool that changes nothing (pure)"
    ]
    for wrong in ("yes", "0" * 16, _fingerprint(served, source)[:8]):
        skills(served, "install", str(source), "--yes", wrong, code=6)
    assert served.request("GET", "/v1/skills/careful").status == 404


def test_at_a_terminal_only_a_yes_installs_and_an_update_that_wants_more_shows_the_difference(
    served: DaemonProcess, tmp_path: Path
) -> None:
    source = make(tmp_path / "source", ECHO, name="asked")

    def answered(*arguments: str, answer: str, code: int) -> str:
        with terminal(served.home, "skills", *arguments, str(source), cwd=tmp_path) as shown:
            shown.expect(r"it\? \[y/N\] ")
            shown.line(answer)
            assert shown.ends() == code
            return shown.text

    for no in ("", "n", "maybe"):
        assert "nothing was installed" in answered("install", answer=no, code=130)
    assert "asked is installed, and quarantined" in answered("install", answer="y", code=0)
    # The same permissions: no question.
    (source / "SKILL.md").write_text("---\nname: asked\ndescription: Better.\n---\nOther.\n")
    assert "asks for nothing new" in skills(served, "update", str(source))
    # More: shown with a mark, asked, and not taken without an answer.
    make(source, asking("read_file", "x"), name="asked", wants={"read": ["notes"]})
    text = answered("update", answer="", code=130)
    assert "+ run: read notes in the workspace" in text
    assert "changed file: run.wat" in text
    assert "nothing was updated" in text
    assert as_json(served, "show", "asked")["permissions"] == [
        "run: a tool that changes nothing (pure)"
    ]
    assert "asked is installed" in answered("update", answer="yes", code=0)
    # Less again is shown too.
    make(source, ECHO, name="asked")
    assert "- run: read notes in the workspace" in skills(served, "update", str(source))
    skills(served, "remove", "asked")
    skills(served, "update", str(source), code=3)


def test_a_signed_skill_of_a_publisher_you_trust_is_trusted_and_falls_with_them(
    served: DaemonProcess, tmp_path: Path
) -> None:
    source, key = make(tmp_path / "source", ECHO, name="signed"), tmp_path / "maker.key"
    public = as_json(served, "keygen", str(key))["public"]
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    skills(served, "keygen", str(key), code=6)
    skills(served, "sign", str(source), "--key", str(key))
    assert as_json(served, "publishers") == {"publishers": []}
    skills(served, "publishers", "--add", "maker", public)
    made = as_json(served, "install", str(source), "--yes", _fingerprint(served, source))
    assert (made["skill"]["state"], made["skill"]["publisher"]) == ("trusted", "maker")
    assert "skill:signed/run" in offered(served)
    skills(served, "export", "signed", str(tmp_path / "signed.zip"))
    assert (
        served.request("POST", "/v1/skills", {"path": str(tmp_path / "signed.zip")}).json[
            "publisher"
        ]
        == "maker"
    )
    skills(served, "publishers", "--remove", "maker")
    skills(served, "publishers", "--remove", "maker", code=3)
    assert offered(served) == []
    assert "not trusted any more" in skills(served, "list")
    (source / "more.md").write_text("after signing")
    assert "changed after signing" in skills(served, "install", str(source), code=2)
    skills(served, "remove", "signed")


@pytest.mark.parametrize("name", ["..", "a/b", "A", "%2e%2e", "x" * 65])
def test_a_name_that_is_none_is_refused(served: DaemonProcess, name: str) -> None:
    skills(served, "show", name, code=2)
    assert served.request("GET", f"/v1/skills/{name}").status in (400, 404)


@pytest.mark.parametrize("name", ["fs", "fs-read", "shell-run", "shell", "memory"])
def test_a_skill_cannot_be_called_like_a_tool(
    served: DaemonProcess, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\nDo it.\n")
    answer = served.request("POST", "/v1/skills", {"path": str(tmp_path / name)})
    assert (answer.status, "rename it" in answer.json["error"]["message"]) == (400, True)
