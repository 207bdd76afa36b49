"""What a compaction found, noted in MEMORY.md of the workspace, if the owner wants that. Off unless
it is configured.

The rule: a note is a change of files like any other. It can be undone, a person's edits win, and
where session rules were laid down nothing is written at all.
"""

import logging

from palyra.agent.checkpoints import Checkpoints
from palyra.agent.session_cache import LiveSession
from palyra.core.errors import PalyraError
from palyra.core.events import SessionCompacted
from palyra.core.redaction import PLACEHOLDER
from palyra.core.sentences import cut
from palyra.features.compaction import managed_blocks
from palyra.store import artifacts
from palyra.store.database import Appended, Database
from palyra.system.clock import Clock
from palyra.system.thread_pool import everyday
from palyra.tools.files import content as files_content
from palyra.tools.paths import PathGuard

log = logging.getLogger("palyra.notes")

DOCUMENT = "MEMORY.md"
# How the effect is called in the journal: no tool has such a name.
EFFECT = "@notes"
_LONGEST = 400
_MOST = 100


class Notes:
    def __init__(
        self, db: Database, checkpoints: Checkpoints, fence: PathGuard, clock: Clock
    ) -> None:
        self._db = db
        self._checkpoints = checkpoints
        self._fence = fence
        self._clock = clock

    async def keep(self, live: LiveSession, applied: Appended) -> None:
        """Bring the session's block up to date. What cannot be written is said in the log: the
        compaction stands either way.
        """
        event = applied.event
        assert isinstance(event, SessionCompacted)
        session = live.session
        lines = _lines(event)
        if not lines or not session.workspace or live.rules:
            return
        effect_id = self._clock.new_id()
        name = f"session-{session.session_id}"
        try:
            change = await everyday.run(
                managed_blocks.plan, self._fence, session.workspace, DOCUMENT, name, lines
            )
            if change is None:
                return
            sealed = await self._checkpoints.of_change(change, session.workspace, effect_id)
            await self._db.write(
                lambda tx: artifacts.keep_effect(
                    tx,
                    call_id=effect_id,
                    session_id=session.session_id,
                    run_id="",
                    tool=EFFECT,
                    position=applied.position,
                    checkpoint=sealed,
                )
            )
            await everyday.run(files_content.apply, [change])
        except (PalyraError, OSError) as error:
            log.warning("%s was not brought up to date: %s", DOCUMENT, error)


def _lines(event: SessionCompacted) -> list[str]:
    """What the user requires; and what was decided, unless something untrusted may have had a part
    in it.
    """
    kinds = ("constraint", "decision") if event.label.integrity == "trusted" else ("constraint",)
    found = [
        f"- {cut(point.text, _LONGEST)} ({point.kind})"
        for point in event.points
        if point.kind in kinds
    ]
    plain = [
        line
        for line in found
        if "<!--" not in line and "-->" not in line and not PLACEHOLDER.search(line)
    ]
    return plain[-_MOST:]
