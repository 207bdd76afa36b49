"""Session rules as verbs: lay down, list, remove. A person does this, through a transport; no tool
and no model can.

The rule: what is kept is exact. Paths are resolved, tools are known, hosts have their one spelling;
everything else is refused.
"""

import os
from functools import partial

from msgspec import Struct

from palyra.core import ids
from palyra.core.errors import InvalidInput, PalyraError
from palyra.core.events import ToolProposed
from palyra.core.tools import Scope, ToolSpec
from palyra.core.verdicts import SessionRule
from palyra.policy import rules
from palyra.policy.rules import Names
from palyra.store import session_rules as kept
from palyra.store import sessions
from palyra.store.database import Database, Tx
from palyra.store.decisions import SessionCounts, needs
from palyra.system.clock import Clock
from palyra.system.redactor import Redactor
from palyra.tools.catalogue import Catalogue
from palyra.tools.net import hosts


class ShownRule(Struct, frozen=True):
    """`words` is the rule as it is kept; `means` says what the daemon does about it; `cedar` is
    what policy is asked with.
    """

    rule_id: str
    words: str
    means: str
    cedar: str
    created_ms: int


class SessionRules:
    def __init__(
        self, db: Database, catalogue: Catalogue, clock: Clock, redactor: Redactor
    ) -> None:
        self._db = db
        self._catalogue = catalogue
        self._clock = clock
        self._redactor = redactor

    async def add(self, principal: str, session_id: str, text: str) -> ShownRule:
        """Lay a rule down in a session of this principal. When this returns it is durable and in
        force.
        """
        ids.check(session_id, "session_id")
        form = rules.parse(text)
        session = await self._db.read(lambda tx: sessions.get(tx, session_id, principal))
        names = Names(partial(_path, session.workspace), self._tool, _host)
        words = rules.words(rules.exact(form, names))
        if self._redactor.redact(words) != words:
            raise InvalidInput(
                "the rule contains a secret: it would stand on the tape; name what it is about"
                " otherwise"
            )
        if len(words) > rules.LONGEST:
            raise InvalidInput(
                f"spelled out, a rule may have {rules.LONGEST} characters: make it two"
            )
        rule = SessionRule(self._clock.new_id(), words)

        def step(tx: Tx) -> kept.StoredRule:
            sessions.get(tx, session_id, principal)
            return kept.add(tx, session_id, principal, rule)

        return _shown(await self._db.write(step))

    async def listing(self, principal: str, session_id: str) -> list[ShownRule]:
        ids.check(session_id, "session_id")

        def query(tx: Tx) -> list[kept.StoredRule]:
            sessions.get(tx, session_id, principal)
            return kept.of_session(tx, session_id)

        return [_shown(rule) for rule in await self._db.read(query)]

    async def remove(self, principal: str, session_id: str, rule_id: str) -> ShownRule:
        ids.check(session_id, "session_id")

        def step(tx: Tx) -> kept.StoredRule:
            sessions.get(tx, session_id, principal)
            return kept.remove(tx, session_id, principal, rule_id)

        return _shown(await self._db.write(step))

    def _tool(self, name: str) -> str:
        known = [spec.name for spec in self._catalogue.specs()]
        if name not in known:
            raise InvalidInput(
                f"there is no tool {name}: a rule about it would hold nothing back; tools are"
                f" {', '.join(known)}"
            )
        return name


def _shown(rule: kept.StoredRule) -> ShownRule:
    given = SessionRule(rule.rule_id, rule.words)
    return ShownRule(
        rule.rule_id,
        rule.words,
        rules.means(rules.parse(rule.words)),
        rules.cedar(given),
        rule.created_ms,
    )


def _path(workspace: str, text: str) -> str:
    """The absolute path with links resolved, as tools resolve what they are given."""
    expanded = os.path.expanduser(text)
    if not workspace and not os.path.isabs(expanded):
        raise InvalidInput(
            f"this session has no workspace, so {text} is not a path: begin it with /"
        )
    path = os.path.realpath(os.path.join(workspace or "/", expanded))
    if not any(mark in text for mark in "/.~") and not os.path.lexists(path):
        raise InvalidInput(
            f"there is no {text} in the workspace: if it is to come, write it as ./{text}"
        )
    return path


def _host(text: str) -> str:
    """A host in the spelling that calls are judged with, with its port if one was given."""
    name, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or (":" in name and not name.startswith("[")):
        name, port = text, ""
    try:
        host = hosts.parse(name)
    except PalyraError as error:
        raise InvalidInput(f"{hosts.shown(text)} is not a host: {error.message}") from error
    if "." not in host and ":" not in host and host != "localhost":
        raise InvalidInput(f"{hosts.shown(text)} is not a host: write it in full, like example.org")
    return hosts.written(host) + (f":{port}" if port else "")


def counts_matter(laid_down: tuple[SessionRule, ...]) -> bool:
    return any(rules.limit(rule) is not None for rule in laid_down)


def used_up(
    laid_down: tuple[SessionRule, ...],
    done: SessionCounts,
    ahead: list[ToolProposed],
    spec: ToolSpec,
    scope: Scope,
) -> str:
    """Return why one call more would be too many, or nothing. `ahead` are calls that were judged
    before it and have not begun.
    """
    calls = done.calls + len(ahead)
    commands = done.commands + sum(needs(call, "process") for call in ahead)
    files = done.files.union(*(call.scope.paths for call in ahead if needs(call, "fs.write")))
    for rule in laid_down:
        limit = rules.limit(rule)
        if limit is None:
            continue
        match limit.counted:
            case "calls":
                over = calls >= limit.most
            case "commands":
                over = "process" in spec.capabilities and commands >= limit.most
            case "files":
                over = (
                    "fs.write" in spec.capabilities and len(files.union(scope.paths)) > limit.most
                )
        if over:
            return f"session rule: {rule.words}"
    return ""
