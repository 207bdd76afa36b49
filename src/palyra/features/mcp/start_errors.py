"""Words for a server that does not start, or fails at its work: what was missing behind the walls,
and the setting or command that mends it.
"""

import os
import re
from collections.abc import Callable

from palyra.features.mcp.packages import DATA
from palyra.features.mcp.settings import ServerConfig

_PATH = r"['\"‘`]?(/[^'\"’`\s:;,)]+)"
_INTERPRETER = re.compile(
    r"env: ['‘\"]?([\w.-]+)['’\"]?: No such file|(?:exec: |^)(\S+): (?:command )?not found$|"
    r"spawn ([\w./-]+) ENOENT",
    re.M,
)
_MODULE = re.compile(
    r"Cannot find (?:module|package) ['\"]([^'\"]+)['\"]|No module named ['\"]?([\w.]+)"
)
_READ_ONLY = re.compile(rf"(?:EROFS[^\n]*?|Read-only file system:? ){_PATH}|EROFS|Read-only file")
_FILE = re.compile(
    rf"(?:ENOENT[^\n]*?|No such file or directory:? |(?:EACCES|EPERM)[^\n]*?|"
    rf"Permission denied:? |Executable doesn't exist at |is not found at |not found: |"
    rf"does not exist:? ){_PATH}|(?:directory|file|path) {_PATH}(?: does not exist| not found)"
)
_NETWORK = re.compile(
    r"ENOTFOUND|EAI_AGAIN|ENETUNREACH|getaddrinfo|Temporary failure in name resolution|"
    r"Name or service not known|Network is unreachable|fetch failed|ERR_NAME_NOT_RESOLVED|"
    r"ERR_INTERNET_DISCONNECTED|ConnectError|All connection attempts failed|"
    r"ERR_PROXY_CONNECTION_FAILED"
)


def hint(config: ServerConfig, said: str) -> str:
    """Return what was missing and how to give it, or nothing if that cannot be told."""
    for pattern, words in _KINDS:
        found = pattern.search(said)
        if found is not None:
            what = next((each for each in found.groups() if each), "")
            return words(config, what)
    return ""


def _interpreter(config: ServerConfig, what: str) -> str:
    return (
        f"the interpreter or program {what} is missing in the sandbox: install it for the whole"
        f" machine, or make its folder readable with {_set(config, 'readable', '/FOLDER')}"
    )


def _module(config: ServerConfig, what: str) -> str:
    if os.path.isabs(what):
        return _file(config, what)
    if config.package:
        return (
            f"the module {what} is missing: the package does not bring it; name it beside the"
            " package (npx -p NAME -p MODULE COMMAND, uvx --with MODULE NAME) and run `palyra mcp"
            f" update {config.name}`"
        )
    return (
        f"the module {what} is missing in the sandbox: make the folder that it is installed in"
        f" readable with {_set(config, 'readable', '/FOLDER')}"
    )


def _read_only(config: ServerConfig, what: str) -> str:
    return (
        f"it cannot write {what or 'where it wants to'}: have it write to a folder of its own,"
        f" which {DATA} stands for in its args and env"
    )


def _file(config: ServerConfig, what: str) -> str:
    if not os.path.lexists(what):
        return f"the file or folder {what} is missing, on this machine too"
    folder = what if os.path.isdir(what) else os.path.dirname(what)
    return (
        f"the file or folder {what} is not shown in the sandbox: {_set(config, 'readable', folder)}"
        f", or, if it should change it, palyra config set mcp.{config.name}.folder {folder}"
    )


def _network(config: ServerConfig, what: str) -> str:
    has = f"only {', '.join(config.hosts)}" if config.hosts else "none"
    return (
        f"it wants the network and has {has}: name the hosts with {_set(config, 'hosts', 'HOST')}"
    )


def _set(config: ServerConfig, key: str, value: str) -> str:
    kept = [*getattr(config, key), value]
    listed = ", ".join(f'"{each}"' for each in kept)
    return f"palyra config set mcp.{config.name}.{key} '[{listed}]'"


_KINDS: tuple[tuple[re.Pattern[str], Callable[[ServerConfig, str], str]], ...] = (
    (_INTERPRETER, _interpreter),
    (_MODULE, _module),
    (_READ_ONLY, _read_only),
    (_FILE, _file),
    (_NETWORK, _network),
)
