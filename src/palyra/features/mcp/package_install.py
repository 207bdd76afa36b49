"""Installing a package of an MCP server: npm or pip fetches it, once and outside of any run, as
they are configured on this machine.

The rule: nothing of a package is run while it is installed. npm's scripts are off, and pip takes
wheels only.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from palyra.core.errors import Conflict, InvalidInput, NotFound, Unavailable, full
from palyra.features.mcp import package_start
from palyra.features.mcp.package_store import InstalledPackage, PackageManifest, PackageStore
from palyra.features.mcp.packages import PackageCommand, PackagePart, normalized

LONGEST_S = 600
_MOST_OUTPUT = 64 << 10
_ADDRESS = re.compile(r"\b[a-z+]+://\S+")


def install(store: PackageStore, command: PackageCommand) -> InstalledPackage:
    """Install a package and everything it needs. Raises NotFound, Unavailable or Conflict; nothing
    is left behind then, nor after Ctrl-C.
    """
    with store.staging() as (tree, in_use):
        if command.ecosystem == "npm":
            manifest = _npm(tree, in_use, command)
        else:
            manifest = _python(tree, in_use, command)
        if command.name and manifest.name != command.name:
            raise Conflict(
                f"the registry gave {manifest.name} for {command.name}: it was renamed; look at"
                " it, and use the new name if that is what you want"
            )
        # It must be possible to start it, or nobody is asked.
        package_start.program_of(tree, manifest.name, command)
        return store.keep(tree, manifest)


def _npm(tree: Path, in_use: int, command: PackageCommand) -> PackageManifest:
    npm = shutil.which("npm")
    if npm is None:
        raise NotFound("npm is missing, which installs this package: install Node.js with npm")
    quiet = ("--no-audit", "--no-fund", "--loglevel=error", "--no-update-notifier")
    safe = ("--ignore-scripts", "--omit=dev", "--install-links", "--no-save-dev")
    (tree / "package.json").write_text('{"private": true}\n')
    argv = [npm, "install", "--save", *quiet, *safe, "--prefix", str(tree), "--", *command.wanted]
    _run(argv, tree, in_use, command)
    lock = json.loads((tree / "package-lock.json").read_bytes())
    name, version = _installed_by_npm(lock, command)
    parts = [
        PackagePart(
            str(entry.get("name") or path.rpartition("node_modules/")[2]),
            str(entry.get("version", "")),
            str(entry.get("integrity", "")),
        )
        for path, entry in lock["packages"].items()
        if "node_modules/" in path and (tree / path).is_dir()
    ]
    # They say where the packages came from, which is not what they are.
    for leftover in ("package.json", "package-lock.json", "node_modules/.package-lock.json"):
        (tree / leftover).unlink(missing_ok=True)
    return PackageManifest(
        ecosystem="npm", name=name, version=version, packages=_sorted(parts), python=""
    )


def _installed_by_npm(lock: dict[str, Any], command: PackageCommand) -> tuple[str, str]:
    """Return the name and the version that the package says of itself."""
    asked = lock["packages"][""].get("dependencies", {})
    key = command.name if command.name in asked else next(iter(asked), "")
    entry = lock["packages"].get(f"node_modules/{key}")
    if entry is None:
        raise Unavailable(f"npm installed nothing for {command.wanted[0]}")
    return str(entry.get("name") or key), str(entry.get("version", "0"))


def _python(tree: Path, in_use: int, command: PackageCommand) -> PackageManifest:
    python = package_start.make_environment(tree)
    _run(_pip(python, command.wanted), tree, in_use, command)
    site = package_start.site_packages(tree)
    parts = []
    for info in sorted(site.glob("*.dist-info")):
        name, version = _metadata(info)
        parts.append(PackagePart(normalized(name), version))
        _forget_scripts(info)
    shutil.rmtree(tree / "bin", ignore_errors=True)
    for cache in site.rglob("__pycache__"):
        shutil.rmtree(cache, ignore_errors=True)
    name = command.name or _of_file(command.wanted[0])
    version = next((each.version for each in parts if each.name == name), "")
    if not version:
        raise Conflict(f"pip installed no package {name}: it was renamed, or is called otherwise")
    return PackageManifest(
        ecosystem="python",
        name=name,
        version=version,
        packages=_sorted(parts),
        python=package_start.PYTHON,
    )


def _pip(python: Path, wanted: Sequence[str]) -> list[str]:
    """Return what installs wheels into an environment: pip, or uv where there is no pip."""
    if find_spec("pip") is not None:
        pip = [sys.executable, "-m", "pip"]
    elif found := shutil.which("pip"):
        pip = [found]
    elif found := shutil.which("uv"):
        into = ("--python", str(python), "--only-binary", ":all:", "--link-mode", "copy")
        return [found, "pip", "install", "--quiet", *into, "--", *wanted]
    else:
        raise NotFound("pip is missing, which installs this package: install pip or uv")
    options = ("--only-binary", ":all:", "--no-compile", "--no-input", "--quiet")
    quiet = ("--disable-pip-version-check", "--no-warn-script-location", "--progress-bar", "off")
    return [*pip, "--python", str(python), "install", *options, *quiet, "--", *wanted]


def _metadata(info: Path) -> tuple[str, str]:
    fields = {}
    for line in (info / "METADATA").read_text(encoding="utf-8", errors="replace").splitlines():
        if not line.strip():
            break
        key, mark, value = line.partition(":")
        if mark and key not in fields:
            fields[key] = value.strip()
    return fields.get("Name", ""), fields.get("Version", "")


def _forget_scripts(info: Path) -> None:
    """Remove from the list of a package's files the scripts that name this very folder."""
    record = info / "RECORD"
    if record.exists():
        lines = record.read_text(encoding="utf-8").splitlines(keepends=True)
        record.write_text("".join(each for each in lines if not each.startswith("../../../bin/")))
    (info / "direct_url.json").unlink(missing_ok=True)


def _of_file(path: str) -> str:
    return normalized(os.path.basename(path).partition("-")[0])


def _sorted(parts: list[PackagePart]) -> tuple[PackagePart, ...]:
    return tuple(sorted(parts, key=lambda each: (each.name, each.version, each.hash)))


def _run(argv: list[str], tree: Path, in_use: int, command: PackageCommand) -> None:
    """Run npm or pip to its end. Its whole group is ended if we are interrupted."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tree.parent,
        start_new_session=True,
        pass_fds=(in_use,),
    )
    try:
        output, _ = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"{command.wanted[0]} was not installed within {LONGEST_S} s: is the registry slow, or"
            " not reachable?"
        ) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if process.returncode != 0:
        raise _failure(output[-_MOST_OUTPUT:].decode("utf-8", "replace"), tree, command)


_NO_NETWORK = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|NewConnectionError"
    r"|Temporary failure in name resolution|Network is unreachable|CERT_|SSLError|dns error"
)


def _failure(said: str, tree: Path, command: PackageCommand) -> Exception:
    """Return what went wrong, in words of ours. What they say may name addresses and passwords."""
    wanted = command.wanted[0]
    program = "npm" if command.ecosystem == "npm" else "pip"
    if "ENOSPC" in said or "No space left" in said or "EDQUOT" in said:
        return Unavailable(full(tree.parent.parent))
    # First: pip also says that it found nothing when it could not look.
    if _NO_NETWORK.search(said):
        return Unavailable(
            f"{program} cannot reach its registry, so {wanted} was not installed; look at the"
            f" network, the proxy and the configuration of {program}"
        )
    if "E404" in said or "from versions: none" in said or "not found in the package reg" in said:
        why = "renamed, removed, private" + (", or has no wheels" if program == "pip" else "")
        return NotFound(f"{program} knows no package {wanted}: it is misspelt, {why}")
    if "ETARGET" in said or "No matching distribution" in said:
        return NotFound(f"{program} knows no such version: {wanted}")
    if "ResolutionImpossible" in said or "No solution found" in said or "ERESOLVE" in said:
        return InvalidInput(
            f"what {wanted} and the packages beside it need cannot be had together; choose other"
            " versions"
        )
    if "requires a different Python" in said or "Requires-Python" in said:
        return InvalidInput(f"{wanted} does not run on Python {package_start.PYTHON}")
    lines = [each for each in said.splitlines() if re.search(r"error", each, re.I)] or [said]
    told = _ADDRESS.sub("[address]", " ".join(lines[:3]))[:300]
    return Unavailable(f"{program} could not install {wanted}: {told}")
