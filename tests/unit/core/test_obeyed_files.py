"""The table of files that programs obey: it names what it should, in every spelling, and leaves
ordinary files alone.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palyra.core import obeyed_files
from palyra.core.obeyed_files import obeyed

OBEYED = {
    "git": (
        ".git .git/config .git/hooks/pre-commit sub/.git/modules/x/config .gitattributes .gitmodules bare/HEAD x/commondir .hg/hgrc"
    ),
    "editor": (
        ".vscode/tasks.json .vscode/settings.json a/.vscode/launch.json x.code-workspace .idea/runConfigurations/x.xml "
        ".exrc .nvimrc .vim/init.vim .dir-locals.el x.sublime-project .devcontainer/devcontainer.json .devcontainer.json "
        ".zed/tasks.json"
    ),
    "packages": (
        "package.json .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnpmfile.cjs setup.py setup.cfg pyproject.toml Pipfile "
        "conftest.py tests/conftest.py sitecustomize.py usercustomize.py .pdbrc x.pth tox.ini noxfile.py build.rs "
        ".cargo/config.toml Gemfile composer.json build.gradle gradlew pom.xml .mvn/extensions.xml a.csproj "
        "Directory.Build.props go.work requirements-dev.txt package-lock.json"
    ),
    "tasks": (
        "Makefile GNUmakefile justfile Taskfile.yml .envrc devbox.json mise.toml .tool-versions Vagrantfile Dockerfile compose.yaml "
        "docker-compose.override.yml .pre-commit-config.yaml lefthook.yml .husky/pre-commit .lintstagedrc.json "
        "eslint.config.js vite.config.ts jest.config.js .eslintrc.js babel.config.json webpack.config.js Rakefile "
        "CMakeLists.txt infra/main.tf"
    ),
    "ci": (
        ".github/workflows/ci.yml .github/actions/x/action.yml .gitlab-ci.yml .circleci/config.yml Jenkinsfile "
        "azure-pipelines.yml bitbucket-pipelines.yml .buildkite/pipeline.yml .drone.yml"
    ),
    "agents": (
        "AGENTS.md CLAUDE.md PALYRA.md GEMINI.md .cursorrules .cursor/rules/a.mdc .windsurfrules .clinerules "
        ".claude/settings.json .mcp.json .continue/config.json .aider.conf.yml skills/x/SKILL.md docs/agents.md"
    ),
    "startup": (
        ".bashrc .zshrc .profile .ssh/config .config/autostart/x.desktop .config/systemd/user/x.service .gdbinit"
    ),
    "programs": (
        "node_modules/.bin/tsc .venv/bin/python venv/bin/pip a/__pycache__/b.pyc node_modules/x/package.json"
    ),
}
ORDINARY = (
    "README.md src/main.py src/app.ts index.html docs/guide.md notes.txt data/rows.csv src/git.py gitignore.md "
    ".gitignore src/package.py lib/config.json src/arc.js tests/test_make.py objects/a.txt hooks.py CHANGELOG.md "
    "src/agents.py a/b/c.go"
)


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind, paths in OBEYED.items() for path in paths.split()]
)
def test_a_file_that_a_program_obeys_is_named(kind: str, path: str) -> None:
    for spelling in (
        path,
        f"deep/down/{path}",
        f"/srv/work/{path}",
        path.upper(),
        path.swapcase(),
        f"{path}.",
        f"./{path} ",
    ):
        row = obeyed(spelling)
        assert row is not None, spelling
        assert row.kind == kind, (spelling, row)
        assert row.who


@pytest.mark.parametrize("path", ORDINARY.split())
def test_an_ordinary_file_is_left_alone(path: str) -> None:
    assert obeyed(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "ＡＧＥＮＴＳ.md",
        "AGENTS\u200b.md",
        "CLAUDE.md::$DATA",
        "package.jso\u200dn",
        ".ｇit/config",
    ],
)
def test_another_spelling_makes_no_other_name(path: str) -> None:
    assert obeyed(path) is not None


def test_every_pattern_of_the_table_matches_what_it_stands_for() -> None:
    for pattern, _ in obeyed_files.patterns():
        example = pattern.replace("/**", "/x/y").replace("*", "a")
        assert obeyed(example) is not None, pattern
        assert pattern == pattern.lower(), pattern
        assert "*" not in pattern.removesuffix("/**").rpartition("/")[0], pattern


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6))
def test_a_folder_above_never_hides_a_file_that_is_obeyed(folders: list[str]) -> None:
    assert obeyed("/".join([*folders, "AGENTS.md"])) is not None
