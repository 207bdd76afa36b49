"""Declarations of tools, and the scope of a decision about one call."""

from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct

from palyra.core import call_values
from palyra.core.argument_roles import ToolUse
from palyra.core.call_values import NO_VALUES, CallValues
from palyra.core.labels import CLEAN, Label

Effect = Literal["pure", "idempotent", "reversible", "once"]
Capability = Literal[
    "fs.read", "fs.write", "process", "network", "secrets", "memory", "message", "browser"
]
Tier = Literal["none", "A", "B", "C"]
SubjectKind = Literal["path_prefix", "program", "command", "host", "recipient", "arguments", "tool"]
PreviewKind = Literal["diff", "command", "request", "text"]


class Limits(Struct, frozen=True):
    time_ms: int = 30_000
    input_bytes: int = 1 << 20
    output_bytes: int = 128 << 10


class ToolSpec(Struct, frozen=True, kw_only=True):
    """The declaration of one tool. `parameters` is the JSON Schema of its arguments, made from
    their type.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    effect: Effect
    capabilities: tuple[Capability, ...] = ()
    limits: Limits = Limits()
    tier: Tier = "none"
    source: str = "internal"
    # The label of everything it returns, whatever the call; a result can only add to it.
    yields: Label = CLEAN
    # What its arguments are for; None: it does not say.
    use: ToolUse | None = None


class Scope(Struct, frozen=True, omit_defaults=True):
    """Scope of a decision. Paths are absolute and resolved; `workspace` is the root they were
    resolved in.

    `capabilities` are what this call needs beyond what its tool declares. `harmless` is true only
    where the tool has proved from the arguments that the call reads inside the workspace and does
    nothing else. `destructive`: it may irreversibly delete or overwrite something; this only
    affects the risk that a person is shown.
    """

    paths: tuple[str, ...] = ()
    workspace: str = ""
    program: str = ""
    command: str = ""
    hosts: tuple[str, ...] = ()
    recipients: tuple[str, ...] = ()
    # References of the secrets that the call is given.
    secrets: tuple[str, ...] = ()
    capabilities: tuple[Capability, ...] = ()
    harmless: bool = False
    destructive: bool = False


class Subject(Struct, frozen=True):
    """Subject of a grant: this program, this path prefix, this host, these values of the arguments;
    `tool` alone means any arguments.
    """

    tool: str
    kind: SubjectKind
    value: str = ""

    def covers(self, tool: str, scope: Scope, values: CallValues = NO_VALUES) -> bool:
        """Return whether a call of `tool` with this scope lies wholly inside the subject."""
        if tool != self.tool:
            return False
        if scope.secrets and self.kind != "command":
            # A yes to a call without a secret never covers one with: only the very same call does.
            return False
        if self.kind == "tool":
            return True
        if not self.value:
            return False  # An empty prefix would cover everything; only the kind `tool` may.
        match self.kind:
            case "arguments":
                return values.declared and call_values.within(self.value, values)
            case "path_prefix":
                prefix = self.value.rstrip("/")
                return bool(scope.paths) and all(
                    path == prefix or path.startswith(prefix + "/") for path in scope.paths
                )
            case "program":
                return scope.program == self.value
            case "command":
                return scope.command == self.value
            case "host":
                return bool(scope.hosts) and all(host == self.value for host in scope.hosts)
            case "recipient":
                return bool(scope.recipients) and all(
                    each == self.value for each in scope.recipients
                )


class Preview(Struct, frozen=True, omit_defaults=True):
    """Preview of a call for the person who approves it.

    `length`: how long the body is, if only its beginning and end are here; what is not shown whole
    cannot be approved there. `digest`: the SHA-256 of the arguments that will run, as the result's
    attestation has it.
    """

    kind: PreviewKind
    title: str
    body: str = ""
    length: int = 0
    digest: str = ""


def input_digest(arguments: dict[str, Any]) -> str:
    """Return the SHA-256 of a call's arguments, as a preview shows it and the result's attestation
    repeats it.
    """
    return sha256(msgspec.json.encode(arguments)).hexdigest()


Outcome = Literal[
    "ok", "error", "denied", "cancelled", "interrupted", "timeout", "unknown", "skipped"
]


class ToolResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of executing a tool. `label` adds to what the tool always yields: where this result
    came from.

    `images` are data URLs; they are stored, checked by their content, and shown to a model that can
    see.
    """

    outcome: Outcome
    text: str
    data: Any = None
    images: tuple[str, ...] = ()
    label: Label = CLEAN
