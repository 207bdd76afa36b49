"""Sees to it that there is a Firefox for the tests of the console, where the system's packages have
one. Without it those tests are skipped, and say so; nothing else needs it.

Run with the project's own Python: `.venv/bin/python scripts/firefox.py`.
"""

import os
import shutil
import subprocess
import sys

PROGRAMS = ("firefox-esr", "firefox")
INSTALL = "apt-get install -y -qq --no-install-recommends firefox-esr"
APT = f"apt-get update -qq && DEBIAN_FRONTEND=noninteractive {INSTALL}"
LONGEST_S = 300


def main() -> int:
    if any(map(shutil.which, PROGRAMS)):
        return 0
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") and (not prefix or shutil.which("sudo")):
        sys.stdout.write("installing Firefox (the package firefox-esr)\n")
        sys.stdout.flush()
        try:
            subprocess.run(
                [*prefix, "sh", "-c", APT],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            sys.stdout.write(f"this took longer than {LONGEST_S} s and was stopped\n")
    if not any(map(shutil.which, PROGRAMS)):
        sys.stdout.write("no Firefox: the tests of the console in it are skipped\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
