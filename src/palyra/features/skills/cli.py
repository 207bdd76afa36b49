"""`palyra skills`: what the agent was taught. Nothing is installed before what it asks for was
shown and somebody said yes.
"""

import sys
from pathlib import Path
from typing import Literal

import click
import msgspec
from msgspec import Struct

from palyra.cli import formatting, json_shapes
from palyra.cli.commands import group, verb
from palyra.cli.exit_codes import InterruptedCommand
from palyra.cli.safe_text import clean, one_line
from palyra.cli.state import CliState
from palyra.client import Client
from palyra.client.types.skills import Listed, Permission, Proposal, ShownSkill
from palyra.core.errors import Conflict, InvalidInput, NotFound
from palyra.features.skills import manifest
from palyra.features.skills.front_matter import check_name
from palyra.features.skills.package import MOST_ARCHIVE

_LEAST_FINGERPRINT = 16
# Every module of a skill is compiled before anybody is asked.
_COMPILING_S = 600.0
_OFFERED = {
    "quarantined": "not offered to the agent",
    "enabled": "offered, its words count as untrusted",
    "trusted": "offered",
}

skills = group("skills", "Skills: list, show, install, trust, remove.", default="list")


class _Made(Struct):
    """Result of a verb, for programs."""

    name: str
    done: str


@verb(skills, "list", help="List installed skills.")
def list_(state: CliState) -> None:
    found = state.api.list_skills().skills
    if state.out.as_json:
        state.out.json({"skills": [json_shapes.skill(each) for each in found]})
        return
    rows = [
        [
            each.record.name,
            each.state,
            _by(each),
            formatting.when(each.record.installed_ms),
            one_line(each.record.description, 60),
        ]
        for each in found
    ]
    state.out.table(["name", "state", "signed by", "installed", "description"], rows)
    if not found:
        state.out.note("no skills are installed: `palyra skills install FOLDER` installs one")
    for each in found:
        if each.problem:
            state.out.note(f"{each.record.name} is not offered: {clean(each.problem)}")


@verb(skills, "show", help="Show a skill: what it may do, its tools, its instructions.")
@click.argument("name")
def show(state: CliState, name: str) -> None:
    found = state.api.get_skill(check_name(name))
    if state.out.as_json:
        state.out.json(json_shapes.shown_skill(found))
        return
    _print(state, found)


@verb(skills, "export", help="Write a skill to a zip file, with its signature.")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
def export(state: CliState, name: str, file: Path) -> None:
    data = state.api.export_skill(check_name(name))
    try:
        with file.open("xb") as made:
            made.write(data)
    except FileExistsError:
        raise Conflict(f"{file} is there already: name another file") from None
    _say(state, name, f"written to {file}", f"{clean(name)} is written to {file}")


@verb(
    skills,
    "look",
    help="Show what a folder or zip file asks for, and its fingerprint. Installs nothing.",
)
@click.argument("source", type=click.Path(path_type=Path))
def look(state: CliState, source: Path) -> None:
    proposal = _looked_at(state.api, source)
    if state.out.as_json:
        state.out.json(proposal)
    else:
        _describe(state, proposal)


@verb(
    skills,
    "install",
    help="Install a skill from a folder or zip file; shows what it asks for first.",
)
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--yes",
    "fingerprint",
    default="",
    metavar="FINGERPRINT",
    help="Accept exactly this skill, as shown before.",
)
def install(state: CliState, source: Path, fingerprint: str) -> None:
    _install(state, _looked_at(state.api, source), source, fingerprint)


@verb(
    skills,
    "update",
    help="Update an installed skill; asks again if it wants more than it was granted.",
)
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--yes",
    "fingerprint",
    default="",
    metavar="FINGERPRINT",
    help="Accept exactly this skill, as shown before.",
)
def update(state: CliState, source: Path, fingerprint: str) -> None:
    proposal = _looked_at(state.api, source)
    if not proposal.updates:
        raise NotFound(
            f"there is no skill {proposal.name} to update: `palyra skills install {source}`"
            " installs it"
        )
    _install(state, proposal, source, fingerprint)


def _looked_at(api: Client, source: Path) -> Proposal:
    found = _sent(api, source)
    assert isinstance(found, Proposal)
    return found


def _sent(api: Client, source: Path, confirm: str = "") -> Proposal | ShownSkill:
    """A folder is read by the daemon, a zip file is sent to it."""
    if not source.exists():
        raise InvalidInput(f"there is no folder or zip file {str(source)!r}")
    patient = api.within(_COMPILING_S)
    if source.is_dir():
        return patient.install_skill(path=str(source.absolute()), confirm=confirm)
    if not source.is_file():
        raise InvalidInput(f"{str(source)!r} is neither a folder nor a zip file")
    with source.open("rb") as file:
        data = file.read(MOST_ARCHIVE + 1)
    if len(data) > MOST_ARCHIVE:
        raise InvalidInput(f"the archive is larger than {MOST_ARCHIVE >> 20} MiB")
    return patient.install_skill_archive(data, confirm=confirm)


def _install(state: CliState, proposal: Proposal, source: Path, fingerprint: str) -> None:
    if not state.out.as_json:
        _describe(state, proposal)
    if fingerprint:
        _check(fingerprint, proposal)
    elif proposal.added or not proposal.updates or proposal.older_than:
        _ask(state, proposal, source)
    # Exactly what was shown: if the files change meanwhile, the daemon refuses.
    made = _sent(state.api, source, proposal.digest)
    assert isinstance(made, ShownSkill)
    if state.out.as_json:
        state.out.json(json_shapes.shown_skill(made))
        return
    done = (
        "updated; it asks for nothing new"
        if proposal.updates and not proposal.added
        else "installed"
    )
    state.out.line(f"{made.skill.record.name} is {done}, and {made.skill.state}")
    if made.skill.state == "quarantined":
        name = made.skill.record.name
        state.out.note(
            f"it is not offered to the agent yet: read `palyra skills show {name}`, then `palyra"
            f" skills enable {name}`"
        )


def _words(permission: Permission) -> str:
    return msgspec.convert(permission, manifest.Permission, from_attributes=True).words


def _check(fingerprint: str, proposal: Proposal) -> None:
    if len(fingerprint) < _LEAST_FINGERPRINT or not proposal.digest.startswith(fingerprint.lower()):
        raise Conflict(
            f"{fingerprint[:64]} is not the fingerprint of this skill: it is {proposal.digest};"
            " look at what it asks for, then accept it with at least the first"
            f" {_LEAST_FINGERPRINT} characters",
            digest=proposal.digest,
        )


def _ask(state: CliState, proposal: Proposal, source: Path) -> None:
    """A yes at the terminal, typed out. Anything else is a no."""
    verb_ = "update" if proposal.updates else "install"
    if state.out.as_json or not sys.stdin.isatty():
        raise Conflict(
            f"no terminal to confirm on. To {verb_} exactly this, run "
            f"`palyra skills {verb_} {source} --yes {proposal.digest[:_LEAST_FINGERPRINT]}`",
            name=proposal.name,
            digest=proposal.digest,
            permissions=[_words(each) for each in proposal.permissions],
            added=[_words(each) for each in proposal.added],
        )
    sys.stderr.write(
        state.out.style(f"{verb_} it? [y/N] ", "bold", "magenta", color=state.out.error_color)
    )
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise InterruptedCommand(f"nothing was {'updated' if proposal.updates else 'installed'}")


def _describe(state: CliState, proposal: Proposal) -> None:
    out, style = state.out, state.out.style
    version = f" {clean(proposal.version)}" if proposal.version else ""
    out.line(f"{style(clean(proposal.name), 'bold')}{version}: {one_line(proposal.description)}")
    if proposal.older_than:
        out.line(style(f"older than the installed version {clean(proposal.older_than)}", "red"))
    if proposal.publisher:
        out.line(f"signed by {clean(proposal.publisher)}, whom you trust")
    else:
        out.line(
            f"signed by {proposal.signer}, whom you do not know"
            if proposal.signer
            else "not signed"
        )
    out.line(f"fingerprint {proposal.digest}")
    for path, what in proposal.changes.items():
        out.line(f"  {what} file: {clean(path)}")
    out.line("It asks for:")
    for permission in proposal.permissions:
        new = permission in proposal.added
        mark = "+ " if proposal.updates and new else "  "
        out.line(
            style(f"  {mark}{clean(_words(permission))}", "yellow")
            if new
            else f"  {mark}{clean(_words(permission))}"
        )
    for permission in proposal.dropped:
        out.line(style(f"  - {clean(_words(permission))}", "dim"))
    if not proposal.permissions:
        out.line("  nothing: it has instructions only")


@verb(skills, "enable", help="Offer a skill to the agent; what it says counts as untrusted.")
@click.argument("name")
def enable(state: CliState, name: str) -> None:
    _set(state, name, "enabled")


@verb(skills, "trust", help="Offer a skill to the agent; what it says counts as yours.")
@click.argument("name")
def trust(state: CliState, name: str) -> None:
    _set(state, name, "trusted")


@verb(skills, "quarantine", help="Do not offer a skill to the agent any more.")
@click.argument("name")
def quarantine(state: CliState, name: str) -> None:
    _set(state, name, "quarantined")


@verb(skills, "remove", help="Remove a skill.")
@click.argument("name")
def remove(state: CliState, name: str) -> None:
    state.api.remove_skill(check_name(name))
    _say(state, name, "removed", f"{clean(name)} is removed")


def _set(state: CliState, name: str, wanted: Literal["quarantined", "enabled", "trusted"]) -> None:
    found = state.api.set_skill_state(check_name(name), state=wanted)
    if state.out.as_json:
        state.out.json(json_shapes.shown_skill(found))
    else:
        state.out.line(
            f"{clean(name)} is {found.skill.state}: {_OFFERED.get(found.skill.state, '')}"
        )


@verb(
    skills,
    "publishers",
    help=(
        "Whose signed skills are trusted. `--add NAME KEY` trusts one more, `--remove NAME` one"
        " less."
    ),
)
@click.option(
    "--add",
    nargs=2,
    default=None,
    metavar="NAME KEY",
    help="Trust what is signed with this public key.",
)
@click.option(
    "--remove",
    "removed",
    default="",
    metavar="NAME",
    help="Trust them no longer; their skills go into quarantine.",
)
def publishers(state: CliState, add: tuple[str, str] | None, removed: str) -> None:
    if add and removed:
        raise InvalidInput("add or remove, one at a time")
    if add:
        state.api.add_publisher(name=add[0], key=add[1])
        _say(state, add[0], "added", f"skills signed by {clean(add[0])} are trusted from now on")
    elif removed:
        state.api.remove_publisher(name=removed)
        _say(
            state,
            removed,
            "removed",
            f"{clean(removed)} is trusted no longer; their skills are in quarantine",
        )
    else:
        found = state.api.list_publishers().publishers
        if state.out.as_json:
            state.out.json({"publishers": found})
        else:
            state.out.table(["name", "public key"], [[each.name, each.key] for each in found])


@verb(
    skills,
    "keygen",
    help="Make a key to sign skills with. The file is for you alone; the public half is printed.",
)
@click.argument("file", type=click.Path(path_type=Path))
def keygen(state: CliState, file: Path) -> None:
    from palyra.features.skills import package

    public = package.make_key(file)
    if state.out.as_json:
        state.out.json({"file": str(file), "public": public})
    else:
        state.out.line(public)
        state.out.note(
            f"others trust it with `palyra skills publishers --add YOUR-NAME {public}`; keep {file}"
            " secret"
        )


@verb(skills, "sign", help="Sign the skill in a folder; writes skill.sig.")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--key", required=True, type=click.Path(path_type=Path), help="The file that keygen made."
)
def sign(state: CliState, folder: Path, key: Path) -> None:
    from palyra.features.skills import package as skills_signature

    made = skills_signature.sign(folder, skills_signature.read_key(key))
    _say(
        state,
        str(folder),
        f"signed by {made.key}",
        f"{folder} is signed by {made.key}; sign it again when a file changes",
    )


def _print(state: CliState, found: ShownSkill) -> None:
    out, record = state.out, found.skill.record
    version = f" {clean(record.version)}" if record.version else ""
    out.line(f"{out.style(record.name, 'bold')}{version}: {one_line(record.description)}")
    out.line(f"{found.skill.state}: {_OFFERED.get(found.skill.state, '')}")
    if found.skill.problem:
        out.line(out.style(clean(found.skill.problem), "red"))
    out.line(
        f"{'signed by ' if record.signer else ''}{_by(found.skill)}, installed"
        f" {formatting.when(record.installed_ms)}"
    )
    out.line(f"fingerprint {record.digest}")
    out.line("It may:")
    for each in found.permissions or ("do nothing by itself: it has instructions only",):
        out.line(f"  {clean(each)}")
    for tool in found.tools:
        out.line(
            f"tool skill:{record.name}/{tool.name} ({tool.effect}): {one_line(tool.description)}"
        )
    out.line(f"files: {clean(', '.join(sorted(record.files)))}")
    if found.instructions:
        out.line()
        out.line(clean(found.instructions))


def _by(listed: Listed) -> str:
    return listed.publisher or ("somebody unknown" if listed.record.signer else "not signed")


def _say(state: CliState, name: str, done: str, text: str) -> None:
    if state.out.as_json:
        state.out.json(_Made(name, done))
    else:
        state.out.line(text)
