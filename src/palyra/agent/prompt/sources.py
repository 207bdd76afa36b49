"""Sources of a prompt outside the tape: the project's notes, the skills' index, the tools on offer.

The rule: it is stored by its content, once for the whole daemon, and the tape names it; so a run
can be shown the same again.
"""

from hashlib import sha256

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr, replace

from palyra.core import call_options
from palyra.core.ids import SYSTEM_TAPE, ArtifactId
from palyra.core.labels import CLEAN, Label
from palyra.core.messages import (
    Image,
    Message,
    ModelRequest,
    Text,
    ToolMessage,
    ToolSchema,
    UserMessage,
)
from palyra.store import artifacts
from palyra.store.database import Tx

_MEDIA_TYPE = "application/json"
_encode = msgspec.json.encode


class Project(Struct, frozen=True):
    """The text as it goes into the prompt, empty if there is none. `note` says which files it has,
    what was cut or left out.
    """

    text: str = ""
    label: Label = CLEAN
    note: str = ""

    def __post_init__(self) -> None:
        # One that was stored and read again must leave its label out of an event, as it was left
        # out when it was recorded.
        if self.label == CLEAN:
            force_setattr(self, "label", CLEAN)


NONE = Project()


class Index(Struct, frozen=True):
    """The text for the prompt, empty without skills. Who is shown it, and the tools of the same
    skills, has seen the label.
    """

    text: str = ""
    label: Label = CLEAN


EMPTY = Index()


class Surroundings(Struct, frozen=True, omit_defaults=True):
    project: Project = NONE
    skills: Index = EMPTY
    tools: tuple[ToolSchema, ...] = ()


class StoredSources(Struct, frozen=True):
    """The surroundings as they go to the store, and `prefix`: the digest of what every request made
    with them begins with.
    """

    artifact_id: ArtifactId
    body: bytes
    prefix: bytes

    def keep(self, tx: Tx) -> None:
        artifacts.keep_artifact(tx, SYSTEM_TAPE, self.body, _MEDIA_TYPE)


def stored(surroundings: Surroundings, instructions: str) -> StoredSources:
    body = _encode(surroundings)
    prefix = sha256(_encode((instructions, surroundings.tools))).digest()
    return StoredSources(ArtifactId(sha256(body).hexdigest()), body, prefix)


def load(tx: Tx, artifact_id: str) -> Surroundings | None:
    found = artifacts.artifact(tx, SYSTEM_TAPE, artifact_id)
    return msgspec.json.decode(found.body, type=Surroundings) if found else None


def digest(request: ModelRequest, prefix: bytes) -> str:
    """SHA-256 of everything a provider is sent. `prefix` stands for instructions and tools, which
    are hashed once.
    """
    messages = tuple(map(_light, request.messages))
    rest = (
        request.model,
        request.cache_key,
        request.max_output_tokens,
        request.options.temperature,
        request.json_mode,
        messages,
    )
    # Only where it is said, so that what was recorded before it could be said has the digest it
    # had.
    wishes = (
        _encode((request.json_schema, request.tool_choice))
        if request.json_schema or request.tool_choice
        else b""
    )
    options = replace(request.options, temperature=None, max_tokens=None)
    if options != call_options.NOTHING:
        wishes += _encode(options)
    return sha256(prefix + _encode(rest) + wishes).hexdigest()


def _light(message: Message) -> Message:
    """The same with images by their digest: bytes of an image would be turned into text first."""
    match message:
        case UserMessage(parts=parts) if any(isinstance(part, Image) for part in parts):
            return UserMessage(
                tuple(part if isinstance(part, Text) else _named(part) for part in parts)
            )
        case ToolMessage(images=images) if images:
            return msgspec.structs.replace(message, images=tuple(map(_named, images)))
        case _:
            return message


def _named(image: Image) -> Image:
    return Image(image.media_type, sha256(image.data).digest())
