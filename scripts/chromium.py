"""See to it that there is a Chromium for the tests of the browser tools: the system's package, else
Playwright's download.

Does nothing where one is installed already. Run with the project's own Python: `.venv/bin/python
scripts/chromium.py`.
"""

import os
import shutil
import subprocess
import sys

from palyra.tools.browser import discovery

INSTALL = "apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core"
APT = f"apt-get update -qq && DEBIAN_FRONTEND=noninteractive {INSTALL}"
LONGEST_S = 600


def ways() -> list[list[str]]:
    """Commands that may bring one, the likeliest first."""
    found = []
    if shutil.which("apt-get"):
        if os.geteuid() == 0:
            found.append(["sh", "-c", APT])
        elif shutil.which("sudo"):
            found.append(["sudo", "-n", "sh", "-c", APT])
    found.append([sys.executable, "-m", "playwright", "install", "chromium"])
    return found


def main() -> int:
    for way in ways():
        state = discovery.find(os.environ)
        if isinstance(state, discovery.Installed):
            break
        sys.stdout.write(f"{state.what}; trying: {' '.join(way)}\n")
        sys.stdout.flush()
        try:
            subprocess.run(way, stdout=subprocess.DEVNULL, timeout=LONGEST_S, check=False)
        except subprocess.TimeoutExpired:
            sys.stdout.write(f"this took longer than {LONGEST_S} s and was stopped\n")
    state = discovery.find(os.environ)
    if isinstance(state, discovery.Installed):
        return 0
    sys.stderr.write(f"error: {state.what}: {state.fix}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
