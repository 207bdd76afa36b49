"""Anchors: places outside the home to which every checkpoint goes, where somebody who writes the
home does not reach.

Each anchor is tried again until it has the newest checkpoint. One that is behind for long, or that
knows another history, is told of.
"""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from palyra.core import ids, merkle, signed_notes
from palyra.core.errors import ChainBroken, ConfigInvalid, InvalidInput, PalyraError, Unavailable
from palyra.core.signed_notes import COSIGNATURE, LogCheckpoint, NoteKey
from palyra.features.proof.witness import AddCheckpoint
from palyra.store.log_keys import KeptNote
from palyra.store.tree import StoredCheckpoint
from palyra.system.private_files import write_private
from palyra.system.thread_pool import everyday

_SECONDS = 20.0
_MOST_BYTES = 1 << 16
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 5.0, 600.0
# Nobody waits longer than this for an anchor when the daemon ends.
_LAST_TRY_S = 5.0
# So many tries in a row may fail before somebody is told.
PATIENCE = 3

_DAY_MS = 86_400_000
# Says something in a conversation of a channel, once for each id.
Say = Callable[[str, str, str, str], Awaitable[object]]
# The proof, in hashes, that the first so many entries are the same in a tree of another size.
Continues = Callable[[int, int], Awaitable[Sequence[bytes]]]


class Anchor(Protocol):
    """Place for checkpoints. What it returns is added to the note: a cosignature."""

    name: str

    async def put(self, checkpoint: StoredCheckpoint, continues: Continues) -> str: ...


class FileAnchor:
    """A file on another disk, with the newest checkpoint in it."""

    def __init__(self, path: Path) -> None:
        self.name = f"file {path}"
        self.path = path

    async def put(self, checkpoint: StoredCheckpoint, continues: Continues) -> str:
        await _compare(await everyday.run(_read, self.path), checkpoint, continues)
        await everyday.run(_write, self.path, checkpoint.note)
        return ""


class GitAnchor:
    """A git repository: the newest checkpoint is a file in it, every one is a commit."""

    def __init__(self, folder: Path) -> None:
        self.name = f"git {folder}"
        self._folder = folder
        self.path = folder / "palyra.checkpoint"

    async def put(self, checkpoint: StoredCheckpoint, continues: Continues) -> str:
        await _compare(await everyday.run(_read, self.path), checkpoint, continues)
        await everyday.run(self._commit, checkpoint)
        return ""

    def _commit(self, checkpoint: StoredCheckpoint) -> None:
        _write(self.path, checkpoint.note)
        self._git("add", self.path.name)
        if self._git("status", "--porcelain", "--", self.path.name):
            message = f"checkpoint over {checkpoint.size} entries"
            self._git("commit", "--quiet", "-m", message, "--", self.path.name)

    def _git(self, *arguments: str) -> str:
        # Nothing of the repository's own is run: no hooks, no signing program, no editor.
        safe = ["-c", "core.hooksPath=/dev/null", "-c", "commit.gpgSign=false"]
        named = ["-c", "user.name=Palyra", "-c", "user.email=palyra@localhost"]
        try:
            done = subprocess.run(
                ["git", "-C", str(self._folder), *safe, *named, *arguments],
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"git cannot be run in {self._folder}: {error}") from error
        if done.returncode:
            raise Unavailable(f"git {arguments[0]} in {self._folder}: {done.stderr.strip()[:300]}")
        return done.stdout


class HttpsAnchor:
    """An endpoint that takes checkpoints as they are. What it makes of them is its own affair."""

    def __init__(self, url: str) -> None:
        self.name = url
        self._url = url

    async def put(self, checkpoint: StoredCheckpoint, continues: Continues) -> str:
        status, body = await everyday.run(_post, self._url, checkpoint.note.encode())
        if status >= 300:
            raise Unavailable(f"{self._url} answers {status}: {body[:200]}")
        return ""


class WitnessAnchor:
    """A witness. It cosigns what continues what it has seen, and nothing else."""

    def __init__(self, key: NoteKey, url: str) -> None:
        self.name = f"witness {key.name}"
        self.key = key
        self._url = f"{url.rstrip('/')}/add-checkpoint"
        # How many entries it has seen, as far as we know; it says so if that is wrong.
        self._seen = 0

    async def put(self, checkpoint: StoredCheckpoint, continues: Continues) -> str:
        if signed_notes.parse(checkpoint.note).signed_by(self.key):
            return ""
        status, body = await self._ask(checkpoint, continues)
        if status == 409 and body.strip().isdecimal():
            self._seen = int(body)
            if self._seen > checkpoint.size:
                raise ChainBroken(
                    f"{self.name} has seen {self._seen} entries, and {checkpoint.size} are here:"
                    " the journal was rolled back"
                )
            status, body = await self._ask(checkpoint, continues)
        if status == 422:
            raise ChainBroken(f"{self.name} has seen another history: {body.strip()[:200]}")
        if status != 200:
            raise Unavailable(f"{self.name} answers {status}: {body.strip()[:200]}")
        signed = signed_notes.parse(checkpoint.note + body)
        if not signed.signed_by(self.key):
            raise Unavailable(f"{self.name} has answered with a signature that is not its own")
        self._seen = checkpoint.size
        return body

    async def _ask(self, checkpoint: StoredCheckpoint, continues: Continues) -> tuple[int, str]:
        proof: Sequence[bytes] = ()
        if 0 < self._seen < checkpoint.size:
            proof = await continues(self._seen, checkpoint.size)
        request = AddCheckpoint(self._seen, tuple(proof), _own_part(checkpoint.note))
        return await everyday.run(_post, self._url, request.encode())


class ChatAnchor:
    """A chat or a mailbox of the owner: a message with the newest checkpoint, once a day. More
    would flood it, and every message is an entry for the next checkpoint.
    """

    def __init__(self, channel: str, conversation: str, say: Say) -> None:
        self.name = f"chat {channel}/{conversation}"
        self._channel = channel
        self._conversation = conversation
        self._say = say

    async def put(self, checkpoint: StoredCheckpoint, continues: Continues) -> str:
        day_ms = checkpoint.time_ms - checkpoint.time_ms % _DAY_MS
        # The same for the whole day: the outbox sends each once.
        message_id = ids.make(day_ms, sha256(self.name.encode()).digest()[:10])
        text = (
            f"Checkpoint of Palyra's journal over {checkpoint.size} entries. Keep this message: it"
            f" shows later what the journal held.\n\n{_own_part(checkpoint.note)}"
        )
        await self._say(self._channel, self._conversation, text, message_id)
        return ""


async def _no_channels(channel: str, conversation: str, text: str, message_id: str) -> None:
    raise Unavailable(f"there is no channel {channel} to send checkpoints to")


def parse(wanted: str, say: Say = _no_channels) -> Anchor:
    """Return the anchor that a setting names. Raise ConfigInvalid if it names none."""
    kind, _, rest = wanted.partition(":")
    if kind == "chat" and all(rest.partition("/")):
        channel, _, conversation = rest.partition("/")
        return ChatAnchor(channel, conversation, say)
    if kind in ("file", "git") and Path(rest).is_absolute():
        return FileAnchor(Path(rest)) if kind == "file" else GitAnchor(Path(rest))
    if kind == "https" or wanted.startswith(_LOOPBACK):
        return HttpsAnchor(wanted)
    kind, *words = wanted.split() or [""]
    if kind == "witness" and len(words) == 2:
        try:
            key = NoteKey.decode(words[0])
        except InvalidInput as error:
            raise ConfigInvalid(f"the witness {words[0][:60]!r}: {error.message}") from None
        if key.algorithm == COSIGNATURE and words[1].startswith(("https://", *_LOOPBACK)):
            return WitnessAnchor(key, words[1])
    raise ConfigInvalid(
        f"{wanted[:100]!r} is no anchor: use file:/PATH, git:/FOLDER, https://HOST/PATH,"
        " chat:CHANNEL/CONVERSATION or `witness KEY https://HOST`"
    )


_LOOPBACK = ("http://127.0.0.1:", "http://[::1]:", "http://localhost:")


class AnchorState:
    """One anchor at work: what it has by now, and why it has not more."""

    def __init__(self, anchor: Anchor) -> None:
        self.anchor = anchor
        self.size = 0
        self.failed = 0
        self.problem = ""
        self.forked = False

    @property
    def behind(self) -> bool:
        return self.forked or self.failed >= PATIENCE


class Anchors:
    """Delivery of every checkpoint to every anchor, each at its own pace."""

    def __init__(
        self,
        anchors: Sequence[Anchor],
        newest: Callable[[], Awaitable[StoredCheckpoint | None]],
        continues: Continues,
        cosigned: Callable[[int, str], Awaitable[object]],
    ) -> None:
        self.states = [AnchorState(each) for each in anchors]
        self._newest = newest
        self._continues = continues
        self._cosigned = cosigned
        self._work: list[asyncio.Task[None]] = []
        self._wake: list[asyncio.Event] = [asyncio.Event() for _ in self.states]

    @property
    def witnesses(self) -> tuple[NoteKey, ...]:
        """The keys of the witnesses among them."""
        anchors = (each.anchor for each in self.states)
        return tuple(each.key for each in anchors if isinstance(each, WitnessAnchor))

    @property
    def readable(self) -> tuple[KeptNote, ...]:
        """Return the anchors that can be read, so that a journal can be held against them."""
        anchors = (each.anchor for each in self.states)
        return tuple(
            KeptNote(each.name, str(each.path))
            for each in anchors
            if isinstance(each, FileAnchor | GitAnchor)
        )

    def start(self) -> None:
        for state, wake in zip(self.states, self._wake, strict=True):
            wake.set()
            self._work.append(asyncio.create_task(self._follow(state, wake)))

    async def close(self) -> None:
        """Give every anchor one more try with the last checkpoint."""
        for task in self._work:
            task.cancel()
        if self._work:
            await asyncio.wait(self._work)
        try:
            async with asyncio.timeout(_LAST_TRY_S):
                await asyncio.gather(*(self.push(state) for state in self.states))
        except TimeoutError:
            pass  # The next start goes on.

    def tell(self) -> None:
        """Announce a new checkpoint."""
        for wake in self._wake:
            wake.set()

    async def _follow(self, state: AnchorState, wake: asyncio.Event) -> None:
        while True:
            await wake.wait()
            wake.clear()
            pause = _FIRST_PAUSE_S
            while not await self.push(state):
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def push(self, state: AnchorState) -> bool:
        """Try to bring an anchor up to date; say if it is."""
        checkpoint = await self._newest()
        if checkpoint is None or checkpoint.size <= state.size:
            return True
        try:
            added = await state.anchor.put(checkpoint, self._continues)
            if added:
                await self._cosigned(checkpoint.size, added)
        except (PalyraError, OSError) as error:
            state.problem = error.message if isinstance(error, PalyraError) else str(error)
            state.forked = isinstance(error, ChainBroken)
            state.failed += 1
            return False
        state.size, state.failed, state.problem, state.forked = checkpoint.size, 0, "", False
        return True


async def _compare(kept: str, checkpoint: StoredCheckpoint, continues: Continues) -> None:
    """Raise ChainBroken if what an anchor has is no earlier state of this log. One of another log
    is left to its owner: an anchor that is used twice is a mistake in the settings.
    """
    if not kept:
        return
    before = LogCheckpoint.parse(signed_notes.parse(kept).text)
    now = LogCheckpoint.parse(signed_notes.parse(checkpoint.note).text)
    if before.origin.partition("~")[0] != now.origin.partition("~")[0]:
        raise Unavailable(f"the anchor has checkpoints of another log, {before.origin}")
    if before.origin != now.origin:
        return
    if before.size > now.size:
        raise ChainBroken(
            f"the anchor has {before.size} entries, and {now.size} are here: the journal was rolled"
            " back"
        )
    proof = await continues(before.size, now.size)
    if not merkle.proves_consistency(before.size, now.size, proof, before.root, now.root):
        raise ChainBroken(f"the anchor has another history of {before.size} entries")


def _own_part(note: str) -> str:
    """A note without the cosignatures that came in later: its first signature is the log's."""
    text, _, below = note.rpartition("\n\n")
    return f"{text}\n\n{below.splitlines(keepends=True)[0]}"


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""


def _write(path: Path, note: str) -> None:
    if not path.parent.is_dir():
        raise Unavailable(f"{path.parent} is not there: is the disk mounted?")
    write_private(path, note.encode())


def _post(url: str, body: bytes) -> tuple[int, str]:
    """Send a body; return the status and the text of the answer."""
    # Late: most daemons have no anchor to send to.
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    request = Request(url, data=body, headers={"Content-Type": "text/plain"}, method="POST")
    try:
        with urlopen(request, timeout=_SECONDS) as answer:
            return answer.status, answer.read(_MOST_BYTES).decode("utf-8", "replace")
    except HTTPError as error:
        return error.code, error.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        raise Unavailable(f"{url} cannot be reached: {error}") from error
