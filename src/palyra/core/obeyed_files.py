"""One table of everything in a workspace that a program on the host executes or obeys without being
asked again.

The sandbox, the write rule of the policies, workers' results and `palyra doctor --attack` all read
this table and no other. A pattern matches at any depth, because any folder can be somebody's
project. `a/**` stands for everything below a folder `a`; a star in a name stands for any characters
of that name. Names are compared as the most forgiving file system would.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.core.input_checks import fold

Kind = Literal["git", "editor", "packages", "tasks", "ci", "agents", "startup", "programs"]
# guarded: read-only in the sandbox, but for the names below. told: a command may change it, and the
# result names it. untold: as told, but so many change together (installed packages) that naming
# them would say nothing.
Treatment = Literal["guarded", "told", "untold"]

# All that a sandboxed command may change in a repository's own folder. Git renames `index.lock` to
# `index`, so locks belong to it.
GIT_FOLDERS = frozenset({"objects", "refs", "logs"})
GIT_FILES = frozenset({"index", "HEAD", "ORIG_HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "packed-refs"})
GIT_LOCKS = frozenset(f"{name}.lock" for name in GIT_FILES)


class ObeyedFiles(Struct, frozen=True):
    """`who` obeys the files that match one of the patterns."""

    kind: Kind
    who: str
    patterns: tuple[str, ...]
    sandbox: Treatment


# Each row: kind, who obeys it, treatment in the sandbox; below it the patterns. Installed programs
# stand before the names that are found among them by the thousand.
_ROWS = """
git | git | guarded
  .git .git/**
git | git | told
  .gitattributes .gitmodules .gitconfig .config/git/** .githooks/** .git-hooks/** .gitmessage .mailmap .lfsconfig .gitreview
  .gitlint .git-blame-ignore-revs commondir config.worktree git-rebase-todo head
git | Jujutsu, Mercurial or Subversion | told
  .jj/** .hg/** .hgrc .hgsub .svn/** .bzr/** .fslckout .pijul/**
programs | Node.js | untold
  node_modules/** bower_components/** jspm_packages/**
programs | Python | untold
  site-packages/** dist-packages/** __pypackages__/** __pycache__/** *.pyc *.pyo .venv/** venv/** .virtualenv/** virtualenv/**
  env/bin/** .tox/** .nox/**
programs | the program's package manager | untold
  vendor/bundle/** vendor/bin/** .bundle/** _opam/** .stack-work/**
programs | Gradle, Maven, sbt or Bazel | untold
  .gradle/** .m2/** .bsp/** .bloop/** .metals/** bazel-bin/**
programs | the shell, by its PATH | untold
  .bin/** .direnv/** .local/bin/** .cargo/bin/** go/bin/**
editor | VS Code and its kin | told
  .vscode/** .vscode-insiders/** .vscode-server/** .vscodium/** *.code-workspace launch.json tasks.json .theia/**
  .code-workspace.json *.code-profile
editor | JetBrains IDEs | told
  .idea/** *.iml *.ipr *.iws .run/** .fleet/**
editor | Visual Studio | told
  .vs/** tasks.vs.json launch.vs.json cppproperties.json *.runsettings *.suo *.user
editor | Vim and Neovim | told
  .vim/** .nvim/** .exrc .nexrc .vimrc _vimrc .gvimrc .nvimrc .nvim.lua .lvimrc .vimspector.json .local.vimrc .lazy.lua
  .neoconf.json .neoconf/** init.vim .config/nvim/** _exrc *.vimrc .vimrc.*
editor | Emacs | told
  .dir-locals.el .dir-locals-2.el .emacs .emacs.d/** .emacs.el .spacemacs .doom.d/** .projectile
editor | Sublime Text | told
  *.sublime-project *.sublime-workspace *.sublime-build *.sublime-settings *.sublime-commands
editor | Zed, Helix, Kakoune, Nova or Lapce | told
  .zed/** .helix/** .kakrc .kak/** .nova/** .lapce/** .kateproject
editor | development containers | told
  .devcontainer/** .devcontainer.json devcontainer.json .devfile.yaml devfile.yaml
editor | cloud editors | told
  .gitpod.yml .gitpod.dockerfile .replit replit.nix .idx/** .stackblitzrc .codesandbox/**
editor | language servers | told
  .ycm_extra_conf.py .clangd compile_commands.json compile_flags.txt .ccls .tern-project .luarc.json .luarc.jsonc
  pyrightconfig.json .solargraph.yml .merlin .ocamlformat .vimrc.lua
editor | Eclipse or NetBeans | told
  .project .classpath .cproject .pydevproject .settings/** .externaltoolbuilders/** nbproject/**
editor | Xcode | told
  project.pbxproj contents.xcworkspacedata *.xcscheme *.xcconfig .lldbinit-xcode
editor | Jupyter | told
  jupyter_notebook_config.* jupyter_server_config.* jupyter_lab_config.* .jupyter/** .ipython/**
packages | npm, yarn, pnpm or Bun | told
  package.json package.json5 package.yaml .npmrc .yarnrc .yarnrc.yml .yarnrc.yaml .yarn/** .pnp.cjs .pnp.js .pnp.loader.mjs
  .pnp.mjs .pnpmfile.cjs pnpmfile.js pnpm-workspace.yaml bunfig.toml bun.lock bun.lockb package-lock.json yarn.lock pnpm-lock.yaml
  npm-shrinkwrap.json lerna.json nx.json project.json rush.json turbo.json workspace.json .bowerrc bower.json .nvmrc .node-version
  .volta .ncurc* *.gyp *.gypi
packages | Deno | told
  deno.json deno.jsonc deno.lock import_map.json
packages | pip, uv, Poetry and Python | told
  setup.py setup.cfg pyproject.toml pipfile pipfile.lock poetry.lock poetry.toml uv.toml uv.lock pdm.toml .pdm.toml pdm.lock
  pixi.toml pixi.lock hatch.toml hatch_build.py requirements*.txt requirements*.in requirements/** constraints*.txt pip.conf
  pip.ini environment*.yml environment*.yaml conda-lock.yml meta.yaml .condarc manifest.in .python-version .pypirc
  .pydistutils.cfg pyodide.toml pyvenv.cfg buildout.cfg
packages | Python | told
  sitecustomize.py usercustomize.py .pdbrc *.pth *._pth python*._pth .pythonrc .pythonrc.py .pythonstartup
packages | pytest and other test runners | told
  conftest.py pytest.ini .pytest.ini pytest.toml tox.ini tox.toml noxfile.py .coveragerc mypy.ini .mypy.ini .pylintrc pylintrc
  .flake8 ruff.toml .ruff.toml .isort.cfg .pre-commit.yaml .style.yapf nose.cfg .noserc unittest.cfg behave.ini
packages | Cargo and Rust | told
  cargo.toml cargo.lock build.rs .cargo/** rust-toolchain rust-toolchain.toml rustfmt.toml clippy.toml .rustfmt.toml .clippy.toml
  rust-project.json cross.toml dist-workspace.toml xtask/** trunk.toml
packages | Go | told
  go.mod go.sum go.work go.work.sum magefile.go magefiles/** tools.go .air.toml .golangci.* .goreleaser.*
packages | Bundler and Ruby | told
  gemfile gemfile.lock gems.rb gems.locked *.gemspec .ruby-version .rspec .rubocop.yml .irbrc .pryrc .simplecov .erb-lint.yml
  .solargraph .rdoc_options .yardopts config.ru spec_helper.rb rails_helper.rb appraisals berksfile dangerfile brewfile cheffile
  podfile podfile.lock *.podspec
packages | Composer and PHP | told
  composer.json composer.lock auth.json .user.ini php.ini .htaccess phpunit.xml* phpstan.neon* psalm.xml* rector.php
  .php-cs-fixer* .php_cs* pint.json phpcs.xml* .phpcs.xml* grumphp.yml artisan
packages | Gradle | told
  *.gradle *.gradle.kts gradlew gradlew.bat gradle.properties gradle/** buildsrc/** build-logic/**
packages | Maven, Ant, sbt or Mill | told
  pom.xml .mvn/** mvnw mvnw.cmd maven.config jvm.config build.xml ivy.xml build.sbt *.sbt project/plugins.sbt
  project/build.properties .sbtopts .jvmopts build.sc build.mill
packages | Kotlin, Groovy or Clojure | told
  *.main.kts build.boot project.clj profiles.clj deps.edn bb.edn shadow-cljs.edn build.clj
packages | .NET | told
  *.csproj *.fsproj *.vbproj *.vcxproj *.proj *.shproj *.esproj *.sln *.slnx *.slnf *.targets *.props *.tasks nuget.config
  global.json dotnet-tools.json packages.config paket.dependencies *.csx *.fsx *.rsp build.cake directory.build.*
  directory.packages.* .config/dotnet-tools.json launchsettings.json build.ps1 build.fsx
packages | Elixir or Erlang | told
  mix.exs mix.lock .iex.exs .formatter.exs .credo.exs rebar.config rebar.config.script .erlang
packages | Haskell | told
  *.cabal cabal.project* stack.yaml* package.yaml setup.hs setup.lhs .ghci hie.yaml .hlint.yaml shake.hs
packages | OCaml, Nim, D, Crystal or Zig | told
  dune dune-project dune-workspace *.opam *.nimble config.nims *.nims dub.json dub.sdl shard.yml build.zig build.zig.zon v.mod
  *.vsh esy.json jbuild myocamlbuild.ml
packages | Swift, Dart or Flutter | told
  package.swift package.resolved cartfile* pubspec.yaml pubspec.lock build.yaml melos.yaml
packages | Perl, Lua, R or Julia | told
  makefile.pl build.pl cpanfile dist.ini .proverc .perltidyrc .perlcriticrc *.rockspec .luacheckrc .rprofile rprofile.site
  .renviron renv/** renv.lock project.toml manifest.toml deps/build.jl startup.jl
packages | Nix or Guix | told
  flake.nix flake.lock default.nix shell.nix devenv.nix devenv.yaml guix.scm manifest.scm channels.scm
packages | Debian, RPM, Arch or Homebrew packaging | told
  debian/** *.spec pkgbuild *.install apkbuild portfile snapcraft.yaml *.ebuild
tasks | make | told
  makefile gnumakefile bsdmakefile *.mk *.mak makefile.* makevars* kbuild kconfig .makerc
tasks | CMake, Meson, Ninja or Autotools | told
  cmakelists.txt cmakepresets.json cmakeuserpresets.json *.cmake meson.build meson_options.txt meson.options build.ninja configure
  configure.ac configure.in autogen.sh bootstrap.sh *.am *.m4 config.guess config.sub *.pro *.pri premake*.lua
tasks | Bazel, Buck, Pants or Please | told
  build.bazel build workspace workspace.bazel module.bazel *.bzl *.bazelrc .bazelversion buck .buckconfig targets pants.toml
  pants.ini .plzconfig .pleaseconfig *.star
tasks | SCons, Waf or Tup | told
  sconstruct sconscript wscript waf tupfile tupfile.lua tuprules.tup fbuild.bff xmake.lua conanfile.*
tasks | just, Task and other task runners | told
  justfile .justfile *.just taskfile taskfile.* taskfiles/** .taskrc* runfile maskfile.md makefile.toml .mise/** mise.* .mise.*
  .rtx.toml .tool-versions .asdfrc .envrc devbox.json .env.vault .proto/** .prototools moon.yml .moon/** .hermit/** rakefile *.rake
  rakefile.rb thorfile guardfile capfile fabfile.py tasks.py dodo.py duties.py manage.py gulpfile.* gruntfile.* jakefile* cakefile
  earthfile tiltfile procfile* overmind.env vagrantfile kitchen.yml .kitchen.yml fastfile fastlane/** appfile matchfile *.nomad
tasks | Docker and its kin | told
  dockerfile dockerfile.* *.dockerfile containerfile containerfile.* docker-compose*.y*ml compose*.y*ml docker-bake.*
  podman-compose.y*ml .docker/** skaffold.yaml *.container *.kube apptainer.def singularity*
tasks | Terraform, Ansible and deployment tools | told
  *.tf *.tf.json *.tofu *.tfvars *.tfvars.json .terraformrc terragrunt.hcl *.pkr.hcl ansible.cfg ansible/** playbook*.y*ml
  pulumi*.yaml serverless.* samconfig.toml cdk.json helmfile.yaml kustomization.y*ml werf.yaml fly.toml netlify.toml vercel.json
  render.yaml wrangler.toml wrangler.json* firebase.json app.yaml app.json amplify.yml now.json heroku.yml
tasks | git hook managers | told
  .husky/** .huskyrc* husky.config.* .pre-commit-config.y*ml .pre-commit-hooks.y*ml lefthook* .lefthook* .lintstagedrc*
  lint-staged* .overcommit.yml .overcommit/** .simple-git-hooks.* simple-git-hooks.* hk.pkl .commitlintrc* .czrc .cz.* .releaserc*
  .versionrc* release.config.* .changeset/** .grit/** prek.toml
tasks | JavaScript tools | told
  *.config.js *.config.cjs *.config.mjs *.config.ts *.config.cts *.config.mts *.config.jsx *.config.tsx *.conf.js *.config.json
  *.config.y*ml *.conf.cjs *.conf.mjs *.conf.ts *.setup.js *.setup.ts *.setup.mjs .*rc.js .*rc.cjs .*rc.mjs .*rc.ts .eslintrc*
  .prettierrc* .stylelintrc* .babelrc* babel.config* .swcrc .mocharc* .nycrc* .c8rc* .jestrc* .taprc .avarc* .parcelrc .postcssrc*
  .browserslistrc .huskyrc .nodemon.json nodemon.json .pm2/** tsconfig*.json jsconfig*.json tslint.json biome.json* .xo-config*
  .storybook/** angular.json ember-cli-build.js webpack.* rollup.* vite.* vue.config.* svelte.config.* .nuxtrc nuxt.config.*
  plopfile.* codegen.y*ml .graphqlrc* ecosystem.config.* karma.* wdio.* protractor.* cypress.json .dumi* .umirc.* metro.config.*
  wallaby.* .yo-rc.json
tasks | file watchers and process managers | told
  .watchmanconfig watchfile* .entr* supervisord.conf *.service *.timer *.socket *.path
ci | GitHub, Gitea or Forgejo | told
  .github/** .gitea/** .forgejo/** action.yml action.yaml codeowners .actrc
ci | GitLab | told
  .gitlab-ci.y*ml *.gitlab-ci.y*ml .gitlab/** .gitlab-ci/**
ci | a CI service | told
  .circleci/** .travis.y*ml appveyor.y*ml .appveyor.y*ml jenkinsfile* *.jenkinsfile azure-pipelines*.y*ml .azure-pipelines/**
  .azuredevops/** .pipelines/** bitbucket-pipelines.y*ml .buildkite/** .drone.* .drone/** .woodpecker* .woodpecker/** .cirrus.*
  .tekton/** .semaphore/** .teamcity/** .builds/** .build.y*ml .ci/** codefresh.y*ml wercker.yml cloudbuild.y*ml buildspec*.y*ml
  .harness/** .screwdriver.* screwdriver.yaml .concourse/** .dagger/** dagger.json .argo/** .argocd* .zuul.* .zuul.d/** zuul.yaml
  .sourcehut/** .evergreen.yml .readthedocs.y*ml readthedocs.yml renovate.json* .renovaterc* dependabot.y*ml .mergify.yml
  bors.toml codecov.yml
agents | coding agents | told
  agents.md agent.md agents.*.md claude.md claude.*.md palyra.md gemini.md qwen.md codex.md warp.md crush.md opencode.md
  copilot.md cursor.md windsurf.md cline.md jules.md amp.md kimi.md conventions.md skill.md memory.md .cursorrules .cursor/**
  .cursorignore .windsurfrules .windsurf/** .clinerules .clinerules/** .cline/** .roo/** .roorules* .roomodes .kilocode/**
  .kilocodemodes copilot-instructions.md copilot-setup-steps.yml *.prompt.md *.instructions.md *.chatmode.md *.agent.md *.mdc
  .claude/** .claude.json .mcp.json mcp.json .mcp/** mcp.toml .codex/** .gemini/** .qwen/** .continue/** .continuerc.json
  .continuerules .aider* .amazonq/** .kiro/** .q/** .augment/** .augment-guidelines .augmentignore .junie/** .trae/** .opencode/**
  opencode.json* .goose/** .goosehints .openhands/** .devin/** .agents/** .agent/** .factory/** .crush/** .crush.json crush.json
  .warp/** .rules .ai/** .llm/** .tabnine/** .cody/** .sourcegraph/** .pearai/** .void/** .copilot/** .amp/** .ruler/** .skills/**
agents | Palyra | told
  .palyra/** palyra.toml *.cedar
startup | the shell | told
  .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc
  .cshrc .tcshrc .login .logout .inputrc .config/fish/** .config/nushell/** .xonshrc .elvish/** .zsh/** .oh-my-zsh/** .bashrc.d/**
  .profile.d/** .autoenv .autoenv.zsh .in .out *.ps1xml profile.ps1 autorun.inf
startup | the desktop | told
  .xprofile .xinitrc .xsession .xsessionrc .xresources .config/autostart/** *.desktop .config/systemd/** .pam_environment
  .config/environment.d/** .config/i3/** .config/sway/** launchagents/** *.plist desktop.ini .directory
startup | cron | told
  crontab .crontab cron.d/** cron.daily/** anacrontab
startup | ssh | told
  .ssh/** authorized_keys known_hosts ssh_config sshd_config
startup | debuggers and consoles | told
  .gdbinit .gdbinit.d/** gdbinit .lldbinit .sqliterc .psqlrc .myclirc .my.cnf .mongorc.js .mongoshrc.js .tmux.conf .screenrc
  .byobu/** .wgetrc .curlrc .netrc .octaverc .maxima .guile .clisprc .sbclrc .node_repl*
startup | other programs | told
  .mailcap .forward .procmailrc .muttrc .config/mpv/** .gnupg/** .kube/** .aws/** .docker/config.json .latexmkrc latexmkrc
"""  # noqa: E501


def _rows(text: str) -> Iterator[ObeyedFiles]:
    heading, patterns = "", list[str]()
    for line in [*text.strip().splitlines(), ""]:
        if line.startswith(" "):
            patterns += line.split()
            continue
        if heading:
            kind, who, sandbox = heading.split(" | ")
            yield msgspec.convert(
                {"kind": kind, "who": who, "patterns": patterns, "sandbox": sandbox}, ObeyedFiles
            )
        heading, patterns = line, []


TABLE: tuple[ObeyedFiles, ...] = tuple(_rows(_ROWS))


class _Index(Struct, frozen=True):
    """The table for one look: by the last name, by a folder above, by how a name ends, and the
    other stars by how it begins.
    """

    names: dict[str, list[tuple[tuple[str, ...], ObeyedFiles]]]
    folders: dict[str, list[tuple[tuple[str, ...], ObeyedFiles]]]
    endings: dict[str, ObeyedFiles]
    beginnings: tuple[str, ...]
    stars: list[tuple[str, ObeyedFiles]]


def obeyed(path: str) -> ObeyedFiles | None:
    """Return the row that names a file, if a program obeys it. The path may be absolute or
    relative; folders count as well.
    """
    parts = [fold(part) for part in path.split("/") if part not in ("", ".")]
    if not parts:
        return None
    for at in range(len(parts) - 1, -1, -1):
        for pattern, row in _INDEX.folders.get(parts[at], ()):
            if _ends(parts, at, pattern):
                return row
    for pattern, row in _INDEX.names.get(parts[-1], ()):
        if _ends(parts, len(parts) - 1, pattern):
            return row
    return _starred(parts[-1])


def by_path(paths: "tuple[str, ...] | list[str]") -> dict[str, ObeyedFiles]:
    """Return those of the paths that a program obeys, each with its row."""
    return {path: row for path in paths if (row := obeyed(path)) is not None}


def patterns() -> Iterator[tuple[str, ObeyedFiles]]:
    """Yield every pattern of the table with its row; `y*ml` stands for both endings of YAML."""
    for row in TABLE:
        for pattern in row.patterns:
            yield from (
                (pattern.replace("y*ml", ending), row)
                for ending in (("yml", "yaml") if "y*ml" in pattern else ("",))
            )


def _starred(name: str) -> ObeyedFiles | None:
    at = name.find(".")
    while at >= 0:
        if (row := _INDEX.endings.get(name[at:])) is not None:
            return row
        at = name.find(".", at + 1)
    if not name.startswith(_INDEX.beginnings):
        return None
    return next((row for pattern, row in _INDEX.stars if fnmatchcase(name, pattern)), None)


def _ends(parts: list[str], at: int, pattern: tuple[str, ...]) -> bool:
    """Return whether the names up to `at` end as the pattern does."""
    first = at + 1 - len(pattern)
    return first >= 0 and tuple(parts[first : at + 1]) == pattern


def _index() -> _Index:
    index = _Index({}, {}, {}, (), [])
    beginnings: dict[str, None] = {}
    for pattern, row in patterns():
        *above, last = pattern.split("/")
        if last == "**":
            index.folders.setdefault(above[-1], []).append((tuple(above), row))
        elif "*" not in last:
            index.names.setdefault(last, []).append(((*above, last), row))
        elif last.startswith("*.") and "*" not in last[1:]:
            index.endings.setdefault(last[1:], row)
        else:
            beginnings[last.partition("*")[0]] = None
            index.stars.append((last, row))
    return msgspec.structs.replace(index, beginnings=tuple(beginnings))


_INDEX = _index()
