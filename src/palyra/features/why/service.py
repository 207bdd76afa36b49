"""Answers to "why": from what somebody names back to what it came from."""

from palyra.features.why.model import WhyAnswer
from palyra.store.database import Database, Tx


class CauseFinder:
    """Finder of the causes of an entry (`SESSION:NUMBER`, or its position in the journal), of a
    file (an absolute path), and of what has an id: a call, an approval, a message to a chat, a run
    and what it cost.
    """

    def __init__(self, db: Database) -> None:
        self._db = db

    async def why(
        self, principal: str, about: str, *, limit: int = 1, everything: bool = False
    ) -> WhyAnswer:
        """Raise NotFound if nothing of that name is here, Forbidden if it is somebody else's.
        `everything`: who asks may read the whole journal. `limit`: so many changes of a file.
        """
        # Loaded when somebody asks: a daemon that waits does without it.
        from palyra.features.why.question import WhyQuestion

        def answer(tx: Tx) -> WhyAnswer:
            return WhyQuestion(tx, principal, everything=everything).answer(about.strip(), limit)

        return await self._db.read(answer)
