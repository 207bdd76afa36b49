"""See to it that there are a Firefox and a WebKit for the tests of the console, where the system's
packages have them. Without one its tests are skipped, and say so; nothing else needs them.

Run with the project's own Python: `.venv/bin/python scripts/other_browsers.py`.
"""

import os
import shutil
import subprocess
import sys

# Each: what it is called, the programs of which one is enough for each part, the packages.
BROWSERS = (
    ("Firefox", (("firefox-esr", "firefox"),), "firefox-esr"),
    ("WebKit", (("WebKitWebDriver",), ("Xvfb",)), "webkit2gtk-driver xvfb"),
)
LONGEST_S = 300


def main() -> int:
    missing = [each for each in BROWSERS if not is_there(each[1])]
    if missing:
        install([name for name, _, _ in missing], " ".join(packages for _, _, packages in missing))
    for name, programs, _ in missing:
        if not is_there(programs):
            sys.stdout.write(f"no {name}: the tests of the console in it are skipped\n")
    return 0


def is_there(programs: tuple[tuple[str, ...], ...]) -> bool:
    return all(any(map(shutil.which, choices)) for choices in programs)


def install(names: list[str], packages: str) -> None:
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if not shutil.which("apt-get") or (prefix and not shutil.which("sudo")):
        return
    sys.stdout.write(f"installing {' and '.join(names)} (packages {packages})\n")
    sys.stdout.flush()
    command = f"apt-get install -y -qq --no-install-recommends {packages}"
    try:
        subprocess.run(
            [
                *prefix,
                "sh",
                "-c",
                f"apt-get update -qq && DEBIAN_FRONTEND=noninteractive {command}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        sys.stdout.write(f"this took longer than {LONGEST_S} s and was stopped\n")


if __name__ == "__main__":
    sys.exit(main())
