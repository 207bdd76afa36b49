"""What of the machine a sandboxed program sees: its programs and libraries, read-only, and little
else.

A list of what is shown, never of what is hidden: what is not named here does not exist inside.
"""

import os
from collections.abc import Sequence

HOME = "/home/agent"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UID = 1000

PROGRAMS = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
)
# What programs need to start, to know the time and to check certificates. No keys, no accounts, no
# name servers.
FILES = (
    *(
        "ld.so.cache",
        "localtime",
        "timezone",
        "locale.alias",
        "locale.conf",
        "mime.types",
        "services",
        "protocols",
    ),
    *("os-release", "debian_version", "ssl/openssl.cnf", "pki/tls/cert.pem"),
)
FOLDERS = (
    *(
        "alternatives",
        "ssl/certs",
        "pki/tls/certs",
        "pki/ca-trust/extracted",
        "crypto-policies",
        "fonts",
    ),
    *("java-11-openjdk", "java-17-openjdk", "java-21-openjdk"),
)

STUBS = {
    "/etc/passwd": (
        f"agent:x:{UID}:{UID}:agent:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
    ),
    "/etc/group": f"agent:x:{UID}:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/resolv.conf": "",
}


def folders() -> list[str]:
    return [path for path in (f"/etc/{name}" for name in FOLDERS) if os.path.isdir(path)]


def programs(more: Sequence[str] = ()) -> list[str]:
    return [path for path in (*PROGRAMS, *more) if os.path.isdir(path)]


def environment(given: dict[str, str], proxy: str = "") -> dict[str, str]:
    """The whole environment of a sandboxed program."""
    env = {
        "PATH": PATH,
        "HOME": HOME,
        "USER": "agent",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
    }
    if proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            env[name] = env[name.upper()] = proxy
        env["no_proxy"] = env["NO_PROXY"] = ""
    return env | given
