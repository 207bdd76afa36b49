"""The rehearsal of an upgrade, on a copy of the home.

The rule: the home itself is only read, and nothing that is made here can act: what is replayed is
answered from its recording.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from msgspec import Struct

import palyra
from palyra.core.errors import PalyraError
from palyra.features.backups import home_copy
from palyra.features.backups.home_copy import JOURNAL, require_space, size_of
from palyra.features.time_travel.replay import service as suite
from palyra.features.time_travel.replay.replay import replay
from palyra.policy import store as policy_store
from palyra.serve import config, offline
from palyra.serve.wiring.upgrade import NEWEST, migrate, schema_of
from palyra.store import log_keys, sqlite_files

# So many of the newest runs are replayed, besides those that somebody keeps.
_RECENT = 10
State = Literal["ok", "warn", "fail"]


class RehearsedStep(Struct, frozen=True):
    """One thing that was tried on the copy."""

    name: str
    state: State
    detail: str


class UpgradeRehearsal(Struct, frozen=True, kw_only=True):
    """Result of a rehearsed upgrade. `version` and `schema` are those it leads to."""

    ok: bool
    version: str
    schema: int
    from_version: str
    from_schema: int
    entries: int
    steps: list[RehearsedStep]


Told = Callable[[RehearsedStep], None]


def rehearse(
    home: Path,
    env: Mapping[str, str],
    *,
    scratch: Path | None = None,
    runs: Path | None = None,
    told: Told = lambda step: None,
) -> UpgradeRehearsal:
    """Upgrade a copy of a home, verify it and replay runs on it. The home itself is only read.

    `scratch` is where the copy is made for so long, `runs` a folder with kept runs.
    """
    with _scratch(home, scratch) as copy:
        return _Rehearsing(home, copy, env, runs, told).run()


@contextmanager
def _scratch(home: Path, place: Path | None) -> Iterator[Path]:
    place = place or Path(tempfile.gettempdir())
    # The copy, and what a migration writes anew.
    require_space(place, 2 * size_of(home), "the copy on which an upgrade is rehearsed")
    with tempfile.TemporaryDirectory(prefix="palyra-rehearsal-", dir=place) as folder:
        yield Path(folder) / "home"


class _Rehearsing:
    def __init__(
        self, home: Path, copy: Path, env: Mapping[str, str], runs: Path | None, told: Told
    ) -> None:
        self._home = home
        self._copy = copy
        self._env = env
        self._runs = runs
        self._told = told
        self._steps: list[RehearsedStep] = []
        self._entries = 0

    def run(self) -> UpgradeRehearsal:
        before = schema_of(self._home / JOURNAL)
        wrong = config.check(self._home, self._env)
        self._say(
            "settings",
            "fail" if wrong else "ok",
            "; ".join(str(each) for each in wrong) or "valid; none is changed",
        )
        if self._attempt("copy", self._copied) and self._attempt("migrate", self._migrated):
            self._attempt("verify", self._verified)
            if not wrong:
                self._attempt("policies", self._policies)
                self._attempt("kept runs", self._kept)
                self._attempt("recent runs", self._recent)
        return UpgradeRehearsal(
            ok=all(each.state != "fail" for each in self._steps),
            version=palyra.__version__,
            schema=NEWEST,
            from_version=home_copy.version_of(self._home),
            from_schema=before,
            entries=self._entries,
            steps=self._steps,
        )

    def _say(self, name: str, state: State, detail: str) -> None:
        self._steps.append(RehearsedStep(name, state, detail))
        self._told(self._steps[-1])

    def _attempt(self, name: str, work: Callable[[], tuple[State, str]]) -> bool:
        """Run a step; a failure is a finding of the rehearsal, not its end."""
        try:
            state, detail = work()
        except (PalyraError, OSError) as error:
            state, detail = "fail", error.message if isinstance(error, PalyraError) else str(error)
        self._say(name, state, detail)
        return state != "fail"

    def _copied(self) -> tuple[State, str]:
        report = home_copy.copy_home(self._home, self._copy, policies=self._policy_folder())
        if not report.verified:
            return "fail", "the journal does not verify: see `palyra journal verify`"
        return "ok", f"{report.entries} entries, verified"

    def _policy_folder(self) -> Path | None:
        if config.check(self._home, self._env):
            return None
        folder = config.load(self._home, self._env).config.policy.folder
        return Path(folder) if folder else None

    def _migrated(self) -> tuple[State, str]:
        before = schema_of(self._copy / JOURNAL)
        migrate(self._copy)
        if before == NEWEST:
            return "ok", f"nothing to do: the journal has schema {NEWEST}"
        return "ok", f"schema {before} to {NEWEST}"

    def _verified(self) -> tuple[State, str]:
        journal = self._copy / JOURNAL
        report = sqlite_files.inspect(journal, trust=log_keys.trust(journal))
        self._entries = report.entries
        if report.bad is not None:
            return "fail", str(report.bad)
        pages = [*sqlite_files.page_problems(journal), *sqlite_files.missing_guards(journal)]
        rows = sqlite_files.inspect_rows(journal)
        if pages or rows:
            named = [*pages, *(f"{each.table} {each.row}: {each.problem}" for each in rows)]
            more = f" and {len(named) - 3} more" if len(named) > 3 else ""
            return "fail", "; ".join(named[:3]) + more
        proven = f", {report.vouched.size} of them signed for" if report.vouched else ""
        return "ok", f"{report.entries} entries on {report.tapes} tapes{proven}; every row follows"

    def _policies(self) -> tuple[State, str]:
        given = config.load(self._home, self._env).config.policy
        folder = Path(given.folder) if given.folder else self._copy / "policies"
        problems = policy_store.check(folder if folder.exists() else None, given.preset)
        if problems:
            return "fail", "; ".join(str(each) for each in problems)
        return "ok", f"preset {given.preset} and {folder.name} load"

    def _kept(self) -> tuple[State, str]:
        folder = self._runs or self._home / "runs"
        if not self._runs and not any(folder.glob(f"*{suite.SUFFIX}")):
            return "ok", f"none: `palyra replay --keep RUN {folder}` keeps one"
        found = suite.run(folder, offline.tools(self._copy, self._env))
        detail = f"{found.identical} identical, {found.different} different, {found.broken} broken"
        return ("ok" if found.ok else "fail"), detail

    def _recent(self) -> tuple[State, str]:
        """A run may differ because prompts changed; one that cannot be replayed is a problem."""
        same, different, broken = 0, 0, list[str]()
        tools = offline.tools(self._copy, self._env)
        for run_id in offline.recent_runs(self._copy, _RECENT):
            try:
                replayed = replay(offline.recording(self._copy, run_id), tools)
            except PalyraError as error:
                broken.append(f"{run_id}: {error.message}")
                continue
            same, different = same + replayed.identical, different + (not replayed.identical)
        detail = f"{same} identical, {different} different, {len(broken)} broken"
        if broken:
            return "fail", f"{detail}: {broken[0]}"
        return ("warn" if different else "ok"), detail
