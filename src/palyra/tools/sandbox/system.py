"""What of the machine a sandboxed program sees: its programs and libraries, read-only, and little else.

A list of what is shown, never of what is hidden: what is not named here does not exist inside.
"""

import os
from collections.abc import Sequence

HOME = "/home/agent"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
UID = 1000

PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
# What programs need to start, to know the time and to check certificates. No keys, no accounts, no name servers.
SETTINGS = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "locale.alias", "locale.conf"),
    *("mime.types", "magic", "services", "protocols", "terminfo", "fonts", "os-release", "debian_version"),
    *("ssl/certs", "ssl/openssl.cnf", "ca-certificates", "crypto-policies"),
    *("pki/tls/certs", "pki/tls/cert.pem", "pki/ca-trust/extracted"),
    *("java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "perl", "python3", "php"),
)

STUBS = {
    "/etc/passwd": f"agent:x:{UID}:{UID}:agent:{HOME}:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "/etc/group": f"agent:x:{UID}:\nnogroup:x:65534:\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/resolv.conf": "",
}

# A new /proc shows little of the machine, but for root some of these can be read.
KERNEL = (
    "/proc/kcore",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/timer_list",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/kpagecgroup",
)


def settings() -> list[str]:
    return [path for path in (f"/etc/{name}" for name in SETTINGS) if os.path.exists(path)]


def programs(more: Sequence[str] = ()) -> list[str]:
    return [path for path in (*PROGRAMS, *more) if os.path.isdir(path)]


def environment(given: dict[str, str], proxy: str = "") -> dict[str, str]:
    """The whole environment of a sandboxed program."""
    env = {"PATH": PATH, "HOME": HOME, "USER": "agent", "LANG": "C.UTF-8", "TERM": "dumb", "TMPDIR": "/tmp"}
    if proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            env[name] = env[name.upper()] = proxy
        env["no_proxy"] = env["NO_PROXY"] = ""
    return env | given
