"""Build the wheel twice, compare the two, install one into an empty environment and use it.

    python scripts/try_wheel.py [--extras EXTRAS] [--keep FOLDER]

Says how long each step takes and how large what was installed is. Nothing of this checkout is used
but the wheel: the daemon runs in a folder of its own, with a home of its own.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
_LONGEST_S = 600


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--extras", default="", help="such as grpc,skills")
    asked.add_argument("--keep", type=Path, help="copy the wheel there")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        folder = Path(made)
        with _timed("build the wheel"):
            wheel = build(folder / "first")
        with _timed("build it again"):
            again = build(folder / "second")
        digests = [sha256(each.read_bytes()).hexdigest() for each in (wheel, again)]
        if digests[0] != digests[1]:
            raise SystemExit("error: the two wheels differ: the build is not reproducible")
        _say(f"{wheel.name}  {wheel.stat().st_size / 1e6:.1f} MB  sha256 {digests[0]}")
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            (given.keep / wheel.name).write_bytes(wheel.read_bytes())
        _run([sys.executable, "-m", "venv", str(folder / "env")])
        programs = folder / "env" / "bin"
        wanted = f"{wheel}[{given.extras}]" if given.extras else str(wheel)
        with _timed("install it into an empty environment"):
            pip = [str(programs / "python"), "-m", "pip", "install", "--quiet"]
            _run([*pip, "--disable-pip-version-check", wanted])
        size = sum(each.stat().st_size for each in (folder / "env").rglob("*") if each.is_file())
        _say(f"installed: {size / 1e6:.0f} MB, with pip and setuptools")
        _use(programs / "palyra", folder)
    return 0


def build(target: Path) -> Path:
    committed = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    # Files in a wheel carry times: those of the commit.
    env = {**os.environ, "SOURCE_DATE_EPOCH": committed.stdout.strip()}
    _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
          "-w", str(target), str(ROOT)], env=env)  # fmt: skip
    (wheel,) = target.glob("*.whl")
    return wheel


def _use(palyra: Path, folder: Path) -> None:
    """The first answer and the console's page, from the daemon in the wheel."""
    work = folder / "work"
    work.mkdir()
    (work / "notes.md").write_text("# Notes\n\nTODO: water the plants\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PALYRA_")}
    env = {**kept, "PALYRA_HOME": str(folder / "home")}
    with _timed("start the daemon"):
        said = _run([str(palyra), "up", "--detach", "--port", "0"], env=env, cwd=work)
    try:
        with _timed("the first answer"):
            answer = _run(
                [str(palyra), "ask", "--final", "what is in this folder?"], env=env, cwd=work
            )
        if "notes.md" not in answer:
            raise SystemExit(f"error: the daemon of the wheel answered {answer!r}")
        _say(answer.strip())
        found = re.search(r"http://127\.0\.0\.1:\d+", said + _run([str(palyra), "login"], env=env))
        assert found is not None
        with urllib.request.urlopen(found.group(), timeout=20) as page:
            html = page.read().decode()
        if "assets/index" not in html:
            raise SystemExit("error: the wheel has no console")
        _say("the console is served")
    finally:
        _run([str(palyra), "stop", "--daemon"], env=env)


def _run(command: list[str], *, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        command, env=env, cwd=cwd, capture_output=True, text=True, timeout=_LONGEST_S, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@contextmanager
def _timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    _say(f"{what}: {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    sys.exit(main())
