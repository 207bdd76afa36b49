"""Checks for what makes a well-formed configuration wrong or worth a word: rules about one value,
about several, and the nearest right name.

No message repeats a value, because a value in the wrong place may be a secret.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from palyra.core.errors import PalyraError
from palyra.models import model_names
from palyra.serve.config import (
    backups,
    budgets,
    channels,
    mcp,
    model_options,
    providers_tools,
    schema,
    windows,
)
from palyra.serve.config.schema import Config
from palyra.serve.config.sections import Provider

PREFIX = "PALYRA_"
SPECIAL = frozenset(
    {
        "PALYRA_CA",
        "PALYRA_HOME",
        "PALYRA_MATERIAL",
        "PALYRA_TOKEN",
        "PALYRA_URL",
        "PALYRA_WORKER_HOME",
    }
)
# Providers that need no section of their own: built in, or found by what is on the machine.
WELL_KNOWN = ("openai", "anthropic", "ollama", "demo")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# Sections with an address: an example of one, and where its credentials belong.
_ADDRESSES = {
    "telemetry": ("http://127.0.0.1:4318", "authorization"),
    "web_search": ("http://127.0.0.1:8888", "key"),
}
# From which likeness on, of 1, a word may have been meant.
_ALIKE = 0.6
_REFERENCE = (
    'write "vault:NAME" for a secret of the vault, "env:NAME" for an environment variable or'
    ' "file:/path" for a file'
)


def objection(path: tuple[str, ...], value: Any) -> str:
    """Return what is wrong with one value of the right type, never repeating the value."""
    if path[0] == "mcp":
        return mcp.objection(path[-1], value)
    if path[0] == "backups":
        return backups.objection(path[-1], value)
    if path[0] in ("channels", "channel_router"):
        return channels.objection(path[-1], value)
    match path[-1]:
        case "api_key" | "key" if value and path[0] != "server" and not _is_reference(value):
            return (
                "holds something that is not a reference; a key does not belong in this file:"
                f" {_REFERENCE}"
            )
        case "base_url" if value:
            parts = urlsplit(value)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                return "must be an http or https address"
            return "must not hold credentials; use api_key" if "@" in parts.netloc else ""
        case "store" if path[0] == "journal" and value:
            if value.startswith(("env:", "file:")):
                return ""
            if not value.startswith(("postgres://", "postgresql://")):
                return (
                    'must be empty, "postgresql://USER@HOST/DATABASE", or where that is, as'
                    " env:NAME or file:/PATH"
                )
            if urlsplit(value).password:
                return (
                    "must not hold a password: put the address into an environment variable or a"
                    " file and name that, as env:NAME or file:/PATH"
                )
            return ""
        case "endpoint" | "url" if path[0] in _ADDRESSES and value:
            example, instead = _ADDRESSES[path[0]]
            if "@" in urlsplit(value).netloc:
                return f"must not hold credentials; use {instead}"
            if not _is_web_address(value):
                return f'must be an http or https address such as "{example}"'
            return ""
        case "authorization" if path[0] == "telemetry" and value and not _is_reference(value):
            return (
                "holds something that is not a reference; a key does not belong in this file:"
                f" {_REFERENCE}"
            )
        case "temperature" if -1 < value < 0:
            return "must be a number from 0 to 2, or -1 for the provider's default"
        case "windows" if path[0] == "providers":
            return windows.objection(value)
        case "private_hosts" if not all(map(_is_private_place, value)):
            return (
                'each must be a host with its port, such as "127.0.0.1:3000"; link-local and'
                " metadata addresses are never reached"
            )
        case "allowed_origins" if not all(
            urlsplit(each).scheme and urlsplit(each).netloc for each in value
        ):
            return 'each must be an origin such as "https://example.org"'
        case "allowed_hosts" if any("/" in each or not each for each in value):
            return 'each must be a host such as "palyra.example.org", without a scheme or a path'
        case "names" if path[0] == "server" and any(
            not each or "/" in each or not each.isascii() for each in value
        ):
            return (
                'each must be a name or an address such as "palyra.example.org" or "192.168.1.5",'
                " without a port"
            )
    return ""


def _is_web_address(text: str) -> bool:
    from palyra.tools.net import urls

    try:
        urls.parse(text)
    except PalyraError:
        return False
    return True


def _is_private_place(text: str) -> bool:
    from palyra.tools.net.resolve import private_place

    return bool(private_place(text))


def _is_reference(value: str) -> bool:
    scheme, _, target = value.partition(":")
    if scheme == "env":
        return target.isidentifier() and target.isascii()
    if scheme == "vault":
        return (
            target.replace("-", "").replace("_", "").replace(".", "").isalnum() and target.isascii()
        )
    return scheme == "file" and target.startswith("/")


def contradictions(config: Config) -> Iterator[tuple[tuple[str, ...], str, str]]:
    for name, provider in config.providers.items():
        if provider.kind == "scripted" and not provider.script:
            yield (
                ("providers", name, "script"),
                "is missing; a scripted provider needs the path of its script",
                "",
            )
        if provider.script and provider.kind != "scripted":
            yield (
                ("providers", name, "script"),
                f"belongs to kind scripted, and this provider is {provider.kind}",
                "",
            )
        if any(not providers_tools.is_mode_of(each) for each in provider.tools_of):
            yield (
                ("providers", name, "tools_of"),
                'each must be "MODEL=auto", "MODEL=native", "MODEL=text" or "MODEL=none"',
                "",
            )
    search = config.web_search
    if search.engine == "searxng" and not search.url:
        yield ("web_search", "url"), "is missing; it says where your searxng is", ""
    if search.engine not in ("", "searxng") and not search.key:
        yield (
            ("web_search", "key"),
            f"is missing; {search.engine} needs one: {_REFERENCE}",
            "",
        )
    tls = config.server.tls
    if bool(tls.cert) != bool(tls.key):
        missing = "key" if tls.cert else "cert"
        yield (
            ("server", "tls", missing),
            "is missing; a certificate of your own needs both, cert and key",
            "",
        )
    if tls.cert and not tls.enabled:
        yield (
            ("server", "tls", "enabled"),
            "is false, and server.tls.cert is set; set it to true, or unset the certificate",
            "",
        )
    own = {
        f"{host}:{port}"
        for host in _LOOPBACK
        for port in (config.server.http_port, config.server.grpc_port)
    }
    if own & set(config.network.private_hosts):
        yield ("network", "private_hosts"), "names the daemon itself; tools never call it", ""
    yield from mcp.contradictions(config)
    yield from channels.contradictions(config)
    yield from budgets.contradictions(config)
    yield from model_options.contradictions(config)
    known = [*config.providers, *WELL_KNOWN]
    listed = [(name, model) for name, each in config.providers.items() for model in each.models]
    for key, chosen in (
        ("default", [config.models.default]),
        ("fallbacks", config.models.fallbacks),
    ):
        for choice in chosen:
            name = choice.partition("/")[0]
            if (choice or key == "fallbacks") and name not in known:
                if model_names.matches(choice, listed):
                    continue
                message = f"names the provider {name!r}, and there is no [providers.{name}]"
                yield ("models", key), message, nearest(name, known)


def notes(home: Path, config: Config, env: Mapping[str, str]) -> Iterator[str]:
    for name, provider in config.providers.items():
        scheme, _, target = provider.api_key.partition(":")
        if scheme == "env" and not env.get(target):
            yield (
                f"providers.{name}.api_key refers to the environment variable {target}, which is"
                " not set"
            )
        if scheme == "file" and not os.access(target, os.R_OK):
            yield f"providers.{name}.api_key refers to the file {target}, which cannot be read"
        if _sends_key_in_the_clear(provider):
            yield f"providers.{name} sends its key over plain http; use https in base_url"
    collector = urlsplit(config.telemetry.endpoint)
    if (
        config.telemetry.authorization
        and collector.scheme == "http"
        and collector.hostname not in _LOOPBACK
    ):
        yield "telemetry sends its key over plain http; use https in telemetry.endpoint"
    yield from mcp.notes(config, env)
    try:
        mode = stat.S_IMODE(home.stat().st_mode)
    except OSError:
        return
    if mode & 0o077:
        yield f"{home} can be opened by other users of this machine; run chmod 700 {home}"


def _sends_key_in_the_clear(provider: Provider) -> bool:
    parts = urlsplit(provider.base_url)
    return bool(provider.api_key) and parts.scheme == "http" and parts.hostname not in _LOOPBACK


def nearest_key(path: tuple[str, ...], name: str, beside: list[str]) -> str:
    if close := nearest(name, beside):
        return ".".join((*path, close))
    # The right key in the wrong table.
    for setting in schema.settings():
        if setting.path[-1] == name:
            return ".".join(setting.path)
    return ""


def nearest_variable(variable: str) -> str:
    # Without the prefix, which would make all of them look alike.
    names = ["__".join(setting.path).upper() for setting in schema.settings()]
    names += [name.removeprefix(PREFIX) for name in SPECIAL]
    close = nearest(variable.removeprefix(PREFIX), names)
    return PREFIX + close if close else ""


def nearest(word: str, choices: list[str]) -> str:
    """The first of those that are most alike, so that `port` is the port that comes first in the
    settings.
    """
    from difflib import SequenceMatcher

    likeness = {choice: SequenceMatcher(None, choice, word).ratio() for choice in choices}
    best = max(likeness, key=lambda choice: likeness[choice], default="")
    return best if likeness.get(best, 0) >= _ALIKE else ""
