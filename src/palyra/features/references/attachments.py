"""Files that a person sends with a message: checked by their content, stored by it, and read as far
as they are text.

The rule: what was sent is bytes in the store and a line on the tape. Text in it is redacted before
it is stored; the bytes of pictures and documents are stored as they came, because redaction reads
text.
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Literal

import msgspec
from msgspec import Struct

from palyra.agent import images
from palyra.agent.images import Picture
from palyra.agent.message_inputs import LONGEST_NAME, Attaching, ReferenceBody
from palyra.core import labels
from palyra.core.errors import InvalidInput, NotFound
from palyra.core.events import Attachment
from palyra.core.ids import ArtifactId
from palyra.core.labels import Label
from palyra.features.references.kinds import cut_at
from palyra.features.references.service import TEXT
from palyra.store import artifacts, file_labels, sessions
from palyra.store.artifacts import Artifact
from palyra.store.database import Database, Tx
from palyra.system import thread_pool
from palyra.system.redactor import Redactor
from palyra.tools import office
from palyra.tools.office import Document

MOST = 8
MOST_BYTES = 16 << 20
MOST_TEXT_BYTES = 2 << 20
MOST_SHOWN = 8_000
MOST_SHOWN_IN_ALL = 24_000
_KEPT_READINGS = 8


class StoredFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`reads_as`: what a model gets of it. `characters` is how much text it has; `note` says why
    there is none.
    """

    artifact: str
    name: str
    media_type: str
    size: int
    reads_as: Literal["image", "text", "description"]
    width: int = 0
    height: int = 0
    characters: int = 0
    note: str = ""


class _Read(Struct, frozen=True):
    """A file after looking into it: what is stored, and what it says."""

    body: ReferenceBody
    attachment: Attachment
    text: str | None


def _checked(data: bytes) -> Picture | str:
    picture = images.check(data)
    return (
        (images.damage(data) or picture)
        if isinstance(picture, Picture) and picture.data is data
        else picture
    )


class Attachments:
    def __init__(self, db: Database, redactor: Redactor) -> None:
        self._db = db
        self._redactor = redactor
        # Storing a file reads it, and so does the message that names it a moment later.
        self._readings: OrderedDict[str, _Read] = OrderedDict()

    async def keep(self, principal: str, session_id: str, name: str, data: bytes) -> StoredFile:
        """Store a file for the session. Raises InvalidInput for what cannot be taken, and says
        why.
        """
        await self._db.read(lambda tx: sessions.get(tx, session_id, principal))
        read = await self._read(data, self._name(name))

        def step(tx: Tx) -> None:
            sessions.get(tx, session_id, principal)
            kept = artifacts.keep_artifact(tx, session_id, read.body.data, read.body.media_type)
            # It may have lain there unused for long: now it is wanted.
            artifacts.touch_artifact(tx, session_id, kept)

        await self._db.write(step)
        self._remember(read)
        kept = read.attachment
        return StoredFile(
            artifact=kept.artifact,
            name=kept.name,
            media_type=kept.media_type,
            size=kept.size,
            reads_as="image" if kept.width else "text" if read.text else "description",
            width=kept.width,
            height=kept.height,
            characters=len(read.text or ""),
            note=kept.note,
        )

    async def of(
        self, principal: str, session_id: str, attaching: Sequence[Attaching]
    ) -> tuple[tuple[Attachment, ...], list[ReferenceBody]]:
        """Return what goes on the tape for these files, and the texts to store with it."""
        if len(attaching) > MOST:
            raise InvalidInput(
                f"a message may have {MOST} files, and this one has {len(attaching)}", limit=MOST
            )
        found, bodies, left = list[Attachment](), list[ReferenceBody](), MOST_SHOWN_IN_ALL
        for each in attaching:
            read = await self._stored(principal, session_id, each)
            attachment = read.attachment
            if read.text:
                shown = cut_at(read.text, min(MOST_SHOWN, left))
                left -= len(shown)
                attachment = msgspec.structs.replace(attachment, text=shown)
                if len(shown) < len(read.text):
                    whole = ReferenceBody(read.text.encode(), TEXT)
                    bodies.append(whole)
                    note = f"the first {len(shown):,} of {len(read.text):,} characters"
                    attachment = msgspec.structs.replace(
                        attachment, text_artifact=whole.artifact, note=note
                    )
            found.append(attachment)
        return tuple(found), bodies

    async def _stored(self, principal: str, session_id: str, attaching: Attaching) -> _Read:
        def query(tx: Tx) -> tuple[Artifact | None, Label]:
            sessions.get(tx, session_id, principal)
            # What a tool brought stays what it is, also when a person hands it on; so does what an
            # agent wrote after reading what is untrusted.
            before = artifacts.artifact_label(tx, session_id, attaching.artifact)
            kept = artifacts.artifact(tx, session_id, attaching.artifact)
            digest = sha256(kept.body).hexdigest() if kept is not None else ""
            files = file_labels.touched(tx, (), [digest])
            return kept, labels.join([before, *(each.label for each in files)])

        artifact, before = await self._db.read(query)
        name = self._name(attaching.name)
        if artifact is None:
            raise NotFound(
                f"this session has no file {attaching.artifact}: send it first",
                artifact_id=attaching.artifact,
            )
        read = self._readings.get(attaching.artifact) or await self._read(artifact.body, name)
        label = labels.merge(labels.private(f"attached:{name}"), before)
        named = msgspec.structs.replace(read.attachment, name=name, label=label)
        return _Read(read.body, named, read.text)

    def _remember(self, read: _Read) -> None:
        self._readings[read.attachment.artifact] = read
        while len(self._readings) > _KEPT_READINGS:
            self._readings.popitem(last=False)

    async def _read(self, data: bytes, name: str) -> _Read:
        if not data:
            raise InvalidInput(f"{name} is empty")
        if len(data) > MOST_BYTES:
            raise InvalidInput(
                f"{name} is larger than {MOST_BYTES >> 20} MiB: put it into the workspace and name"
                " it there"
            )
        try:
            document = await office.read(data, name)
        except InvalidInput as error:
            raise InvalidInput(
                f"{name} cannot be taken: {error.message}", **error.details
            ) from error
        if document.media_type.startswith("image/"):
            return await self._picture(data, name)
        return await self._document(data, name, document)

    async def _picture(self, data: bytes, name: str) -> _Read:
        picture = await thread_pool.everyday.run(_checked, data)
        if isinstance(picture, str):
            raise InvalidInput(f"{name} cannot be taken: {picture}")
        body = ReferenceBody(picture.data, picture.media_type)
        attachment = Attachment(
            body.artifact,
            picture.media_type,
            name=name,
            size=len(picture.data),
            width=picture.width,
            height=picture.height,
            label=labels.private(f"attached:{name}"),
        )
        return _Read(body, attachment, None)

    async def _document(self, data: bytes, name: str, document: Document) -> _Read:
        if document.plain and len(data) > MOST_TEXT_BYTES:
            raise InvalidInput(
                f"{name} has more than {MOST_TEXT_BYTES >> 20} MiB of text: put it into the"
                " workspace and name it there"
            )
        text = (
            await thread_pool.everyday.run(self._redactor.redact, document.text)
            if document.text
            else None
        )
        stored = await thread_pool.everyday.run(self._clean, data) if document.plain else data
        body = ReferenceBody(stored, TEXT if document.plain else document.media_type)
        note = await self._redactor.redacted(document.note)
        label = labels.private(f"attached:{name}")
        attachment = Attachment(
            ArtifactId(body.artifact),
            document.media_type,
            name=name,
            size=len(stored),
            note=note,
            label=label,
        )
        return _Read(body, attachment, text)

    def _clean(self, data: bytes) -> bytes:
        """A text file without secrets: the very same bytes if there are none."""
        from palyra.tools.web import body_text

        text, _ = body_text.decode(data, "")
        clean = self._redactor.redact(text)
        return data if clean == text else clean.encode()

    def _name(self, given: str) -> str:
        """The last part of a path, fit for a line."""
        last = PurePosixPath(given.replace("\\", "/")).name
        shown = re.sub(r"\s+", " ", "".join(char for char in last if char.isprintable())).strip()
        return self._redactor.redact(shown[:LONGEST_NAME]) or "file"
