"""What a sandboxed command leaves in repositories never makes git on the host run anything, and
work with git goes on.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from palyra.core.obeyed_files import GIT_FILES, GIT_FOLDERS
from tests.escapes.world import SECRET, World, world

EVIL = '[core]\\n fsmonitor = "touch {flag}; false"\\n'
ID = "-c user.name=a -c user.email=a@example.org -c protocol.file.allow=always -c commit.gpgsign=false -c gc.auto=0"


class Repository:
    """A repository with a submodule, a worktree inside and history; `flag` is what no git of the
    host may make.
    """

    def __init__(self, here: World) -> None:
        self.here, self.flag = here, here.outside / "ESCAPED"
        subprocess.run(["rm", "-rf", str(here.work / ".git")], check=True)
        self.git("init -q -b main .")
        (here.work / "a.txt").write_text("a\n")
        self.git("add a.txt")
        self.git("commit -qm one")
        library = here.outside / "library"
        library.mkdir()
        self.git("init -q -b main .", library)
        (library / "l.txt").write_text("l\n")
        self.git("add l.txt", library)
        self.git("commit -qm library", library)
        self.git(f"submodule --quiet add {library} lib")
        self.git("commit -qm submodule")
        self.git("worktree add -q tree -b side")

    def git(self, words: str, where: Path | None = None) -> str:
        done = subprocess.run(
            f"git {ID} {words}",
            shell=True,
            cwd=where or self.here.work,
            env={**os.environ, "HOME": str(self.here.outside), "GIT_EDITOR": "true"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout + done.stderr

    def run(self, command: str) -> str:
        command = (
            command.replace("{evil}", EVIL)
            .replace("{flag}", str(self.flag))
            .replace("git ", f"git {ID} ")
        )
        result = self.here.run(command, timeout_s=30)
        assert not result.data["killed"]
        return result.text

    def escaped(self) -> bool:
        """Whether anything a person might do next runs what was planted."""
        work = self.here.work
        places = {
            work,
            work / "lib",
            work / "tree",
            *(path for path in work.rglob("*") if path.is_dir() and ".git" not in path.parts),
        }
        for place in sorted(places):
            for words in (
                "status",
                "diff",
                "log -1 -p",
                "stash list",
                "submodule status",
                "rebase --continue",
                "add -A --dry-run .",
            ):
                self.git(words, place)
        (work / "later.txt").write_text("later\n")
        self.git("add later.txt")
        self.git("commit -qm later")
        self.git("submodule update --init --recursive")
        self.git("checkout -q -b later")
        return self.flag.exists()


@pytest.fixture
def repository() -> Iterator[Repository]:
    with world() as here:
        here.owned_by("root")
        yield Repository(here)


HOOK = "printf '#!/bin/sh\\ntouch {flag}\\n'"
FILTER = "printf '*.txt filter=evil diff=evil\\n'"
FILTER_CONFIG = (
    '\'[filter "evil"]\\n clean=touch {flag}\\n[diff "evil"]\\n textconv=touch {flag}\\n\''
)
ESCAPES = {
    "another common folder": "cp -r .git e; printf '{evil}' > e/config; echo ../e > .git/commondir",
    "another common folder by rename": "cp -r .git e; printf '{evil}' > e/config; echo ../e > c; mv c .git/commondir",
    "the settings": "printf '{evil}' >> .git/config; git config core.fsmonitor 'touch {flag}; false'",
    "the settings, renamed": "printf '{evil}' > .git/config.lock; mv -f .git/config.lock .git/config",
    "the settings, unlinked": "rm -f .git/config; printf '{evil}' > .git/config",
    "settings of a worktree": "printf '{evil}' > .git/config.worktree; git config extensions.worktreeConfig true",
    "settings of a submodule": "printf '{evil}' >> .git/modules/lib/config",
    "a hook of a submodule": HOOK
    + " > .git/modules/lib/hooks/post-checkout; chmod +x .git/modules/lib/hooks/post-checkout",
    "a submodule's folder anew": "rm -rf .git/modules/lib; mkdir -p .git/modules/lib; printf '{evil}' > .git/modules/lib/config",
    "a hook": HOOK + " > .git/hooks/post-commit; chmod +x .git/hooks/post-commit",
    "every hook": "for h in pre-commit post-checkout post-index-change reference-transaction; do "
    + HOOK
    + " > .git/hooks/$h; chmod +x .git/hooks/$h; done",
    "another folder of hooks": "mv .git/hooks .git/old; mkdir .git/hooks; "
    + HOOK
    + " > .git/hooks/post-commit; chmod -R +x .git/hooks",
    "the folder of hooks, by settings": "mkdir h; "
    + HOOK
    + " > h/post-commit; chmod +x h/*; git config core.hooksPath h",
    "a rebase to be continued": "mkdir -p .git/rebase-merge; echo 'exec touch {flag}' > .git/rebase-merge/git-rebase-todo; "
    "echo refs/heads/main > .git/rebase-merge/head-name; "
    "git rev-parse HEAD | tee .git/rebase-merge/onto .git/rebase-merge/orig-head; "
    "touch .git/rebase-merge/interactive; echo 1 > .git/rebase-merge/msgnum",
    "the common folder of a worktree": "cp -r .git e; printf '{evil}' > e/config; echo ../../../e > .git/worktrees/tree/commondir",
    "settings of a known worktree": "printf '{evil}' > .git/worktrees/tree/config.worktree",
    "attributes": FILTER + " > .git/info/attributes; printf " + FILTER_CONFIG + " >> .git/config",
    "attributes in the tree": FILTER
    + " > .gitattributes; printf "
    + FILTER_CONFIG
    + " >> .git/config",
    "a gitfile to an own folder": "cp -r .git e; printf '{evil}' > e/config; mkdir s; echo 'gitdir: ../e' > s/.git",
    "a submodule's gitfile": "cp -r .git/modules/lib e; printf '{evil}' > e/config; rm -f lib/.git; echo 'gitdir: ../e' > lib/.git",
    "a submodule's folder exchanged": "cp -r .git/modules/lib e; printf '{evil}' > e/config; mv lib lib2; mkdir lib; "
    "cp lib2/l.txt lib; "
    ""
    "echo 'gitdir: ../e' > lib/.git",
    "a worktree's gitfile": "cp -r .git e; printf '{evil}' > e/config; rm -f tree/.git; echo 'gitdir: ../e' > tree/.git",
    "a submodule with its own folder": "git init -q sub; cd sub; echo x > x; git add x; git commit -qm x; "
    "printf '{evil}' >> .git/config; "
    ""
    "cd ..; git add sub; git commit -qm sub",
    "a submodule with a hook": "git init -q sub; cd sub; echo x > x; git add x; git commit -qm x; "
    + HOOK
    + " > .git/hooks/post-checkout; chmod +x .git/hooks/*; cd ..; git add sub",
    "a bare repository": "git init -q --bare b; printf '{evil}' >> b/config; printf ' bare = false\\n worktree = .\\n' >> b/config",
    "a bare repository in a folder that was there": "mkdir -p d; cp -r .git/. d/; printf '{evil}' > d/config",
    "a repository by a link": "cp -r .git e; printf '{evil}' > e/config; mkdir s; ln -s ../e s/.git",
    "included settings": "git init -q sub; printf '{evil}' > more; printf '[include]\\n path = ../../more\\n' >> sub/.git/config",
    "settings on one line": "git init -q sub; printf '[core] fsmonitor=\"touch {flag}; false\"\\n' >> sub/.git/config",
    "settings over two lines": "git init -q sub; printf '[core]\\n fsmon\\\\\\nitor=touch {flag}\\n' >> sub/.git/config",
    "a worktree of its own": "cp -r .git e; printf '{evil}' > e/config; mkdir s e2; cp .git/HEAD e2/HEAD; "
    "echo ../e > e2/commondir; "
    "echo 'gitdir: ../e2' > s/.git",
    "a folder in refs": "cp -r .git .git/refs/e; printf '{evil}' > .git/refs/e/config; mkdir s; "
    "echo 'gitdir: ../.git/refs/e' > s/.git",
    "a folder in objects": "cp -r .git /tmp/e; cp -r /tmp/e .git/objects/e; printf '{evil}' > .git/objects/e/config; mkdir s; "
    "echo 'gitdir: ../.git/objects/e' > s/.git; git add s",
    "the whole folder exchanged": "mv .git g; cp -r g .git; rm -rf .git; git init -q; printf '{evil}' >> .git/config",
    "in a folder that is hidden": "mkdir -p .aws/x; cd .aws/x; git init -q; echo x > x; git add x; git commit -qm x; "
    "printf '{evil}' >> .git/config; cd ../..; git add .aws/x; git commit -qm sub",
    "in a folder that cannot be listed": "mkdir -p d/x; cd d/x; git init -q; echo x > x; git add x; git commit -qm x; "
    "printf '{evil}' >> .git/config; cd ../..; git add d/x; git commit -qm sub; chmod 0111 d d/x",
    "in the dark": "mkdir -p x/y; touch -d 2020-01-01 x/y x; cp -r .git x/y/.git; printf '{evil}' > x/y/.git/config; "
    "touch -d 2020-01-01 x/y x",
}


@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_planted_is_run_by_git_on_the_host(repository: Repository, name: str) -> None:
    before = repository.git("status --short --branch")
    said = repository.run(ESCAPES[name])
    assert not repository.escaped(), said
    assert "fatal" not in repository.git("status"), said
    assert "## main" in before


def test_the_same_works_where_nothing_holds_it(repository: Repository) -> None:
    """Otherwise the test above would prove nothing."""
    command = (
        ESCAPES["another common folder"]
        .replace("{evil}", EVIL)
        .replace("{flag}", str(repository.flag))
    )
    subprocess.run(["bash", "-c", command], cwd=repository.here.work, check=True)
    assert repository.escaped()


def test_of_gits_own_folder_only_what_is_on_the_list_changes(repository: Repository) -> None:
    own = repository.here.work / ".git"
    before = {path.name: path.read_bytes() if path.is_file() else b"" for path in own.iterdir()}
    repository.run(
        "for f in $(ls -A .git) commondir config.worktree x; do rm -rf .git/$f; echo x > .git/$f; mkdir .git/$f; done; true"
    )
    after = {path.name: path.read_bytes() if path.is_file() else b"" for path in own.iterdir()}
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    assert changed <= GIT_FILES | GIT_FOLDERS


@pytest.mark.parametrize(
    "name", ["in a folder that is hidden", "in a folder that cannot be listed"]
)
def test_nothing_planted_is_run_for_an_ordinary_user_either(name: str) -> None:
    with world() as here:
        here.owned_by("root")
        repository = Repository(here)
        here.owned_by("ordinary")
        command = (
            ESCAPES[name]
            .replace("{evil}", EVIL)
            .replace("{flag}", str(repository.flag))
            .replace("git ", f"git {ID} ")
        )
        said = here.run(command, "ordinary", timeout_s=30).text
        assert "palyra-held" in said, said
        here.owned_by("root")
        assert not repository.escaped(), said


def test_alternates_and_links_stay_out(repository: Repository) -> None:
    work, outside = repository.here.work, repository.here.outside
    repository.run(
        f"echo {outside}/library/.git/objects > .git/objects/info/alternates; rm .git/logs/HEAD; "
        f"ln -s {outside}/target .git/logs/HEAD; "
        f"ln -s {outside} .git/refs/heads/out; ln -s {outside} .git/objects/zz"
    )
    assert not (work / ".git/objects/info/alternates").exists()
    assert [path for path in (work / ".git").rglob("*") if path.is_symlink()] == []
    repository.git("commit --allow-empty -qm next")
    assert not (outside / "target").exists()


def test_work_with_git_goes_on_in_the_sandbox(repository: Repository) -> None:
    work = repository.here.work
    said = repository.run(
        "set -e; echo b > b.txt; git add b.txt; git commit -qm two; git checkout -q -b topic; echo c > c.txt; git add c.txt; "
        "git commit -qm three; git checkout -q main; git merge -q --no-ff -m merged topic; echo d >> a.txt; "
        "git stash -q; git stash pop -q; "
        "git add a.txt; git branch done; git tag v1; git repack -adqn; git pack-refs --all; echo fine"
    )
    assert "fine" in said, said
    assert "not kept" not in said, said
    assert repository.git("log --format=%s -4 --first-parent").split() == [
        "merged",
        "two",
        "submodule",
        "one",
    ]
    assert repository.git("status --short").split() == [
        "M",
        "a.txt",
    ] or "M  a.txt" in repository.git("status --short")
    assert "done" in repository.git("branch")
    assert "fatal" not in repository.git("fsck") + repository.git("status")
    assert [path.name for path in (work / ".git").iterdir() if path.name.startswith("palyra")] == []


def test_work_goes_on_in_submodules_and_worktrees(repository: Repository) -> None:
    said = repository.run(
        "set -e; cd lib; echo m >> l.txt; git add l.txt; git commit -qm inner; cd ../tree; echo t > t.txt; git add t.txt; "
        "git commit -qm leaf; echo fine"
    )
    assert "fine" in said, said
    assert "inner" in repository.git("log -1 --format=%s", repository.here.work / "lib")
    assert "leaf" in repository.git("log -1 --format=%s", repository.here.work / "tree")
    assert repository.git("status --short", repository.here.work / "tree") == ""


def test_a_rebase_within_one_command_works(repository: Repository) -> None:
    said = repository.run(
        "set -e; git checkout -q -b r HEAD~1; echo r > r.txt; git add r.txt; git commit -qm r; git rebase -q main; echo fine"
    )
    assert "fine" in said, said
    assert repository.git("log --format=%s -2").split() == ["r", "submodule"]


def test_what_does_not_come_along_is_said(repository: Repository) -> None:
    said = repository.run("echo ../e > .git/commondir; echo '#' > .git/rebase-apply")
    assert "not kept: .git/commondir, .git/rebase-apply" in said


def test_a_new_repository_that_is_plain_stays_and_is_said(repository: Repository) -> None:
    said = repository.run(
        "git init -q new; cd new; echo x > x; git add x; git commit -qm first; git remote add o https://example.org/x"
    )
    assert "made a git repository: new/.git" in said
    assert repository.git("log --format=%s", repository.here.work / "new").split() == ["first"]


def test_a_new_repository_that_would_run_programs_is_put_to_rest_and_said(
    repository: Repository,
) -> None:
    said = repository.run("git init -q new; git -C new config core.fsmonitor 'touch {flag}'")
    assert "core.fsmonitor" in said
    assert "palyra-held" in said
    assert not (repository.here.work / "new/.git").exists()


def test_files_that_programs_obey_are_named_when_they_change(repository: Repository) -> None:
    (repository.here.work / "package.json").write_text("{}")
    said = repository.run(
        "echo x > plain.md; mkdir -p .vscode; echo '{}' > .vscode/tasks.json; echo '{\"a\":1}' > package.json"
    )
    assert ".vscode/tasks.json (VS Code" in said
    assert "package.json (npm" in said
    assert "plain.md" not in said
    assert "obey" not in repository.run("cat package.json; echo y > plain.md")


def test_a_command_that_goes_on_brings_its_commits_before_it_ends(repository: Repository) -> None:
    """A background job or a server may run for days; the host's git and its own must not drift
    apart.
    """
    said = repository.run(
        "echo z > z.txt; git add z.txt; git commit -qm live; for i in $(seq 200); do sleep 0.1; "
        "grep -q now .git/FETCH_HEAD 2>/dev/null && exit 0; "
        "[ $i = 20 ] && git fetch -q . && echo now >> .git/FETCH_HEAD; done; exit 1"
    )
    assert "exit code 0" in said


def test_a_change_on_the_host_meanwhile_is_not_overwritten(repository: Repository) -> None:
    from palyra.tools.sandbox.repositories import Stage

    own = repository.here.work / ".git"
    stage = Stage(str(own))
    inside = Path(stage.masks[0].source)
    (inside / "HEAD").write_text("ref: refs/heads/side\n")
    (own / "HEAD").write_text("ref: refs/heads/other\n")
    said = stage.sync()
    assert (own / "HEAD").read_text() == "ref: refs/heads/other\n"
    assert "changed on the host" in said[0]
    (inside / "HEAD").write_text("nonsense\n")
    assert "names no branch" in stage.sync()[0]
    assert (own / "HEAD").read_text() == "ref: refs/heads/other\n"
    stage.close()
    assert not inside.exists()


def test_what_a_daemon_that_died_left_is_removed(repository: Repository) -> None:
    left = repository.here.work / ".git" / "palyra-sandbox-dead"
    left.mkdir()
    repository.run("git status")
    assert not left.exists()


@pytest.mark.parametrize(
    "place", [".", "n", "n/.git", "n/.git/objects", "n/.git/refs/heads", "objects"]
)
def test_a_repository_uncovers_no_hidden_file(repository: Repository, place: str) -> None:
    """What was hidden stays so, also if the folder above it was moved into a repository that a
    command made.
    """
    first = f"git init -q --bare n; git init -q n/w; mkdir -p {place} objects refs; cp .git/HEAD HEAD; mv conf {place}/moved; true"
    repository.run(first)
    said = repository.run("cat .env; find . -name '.env*' -exec cat {} +; grep -ra canary . ; true")
    assert SECRET not in said


def test_a_branch_that_is_called_like_a_key_is_a_branch(repository: Repository) -> None:
    repository.git("branch id_rsa-rotation")
    said = repository.run(
        "git checkout -q id_rsa-rotation && git commit -q --allow-empty -m rotated && echo fine"
    )
    assert "fine" in said, said
    assert "rotated" in repository.git("log -1 --format=%s id_rsa-rotation")


def test_tier_b_refuses_to_write_in_a_repository(repository: Repository) -> None:
    with pytest.raises(AssertionError, match=r"Forbidden(.|\n)*install bubblewrap"):
        repository.here.run("true", most="B")
