"""Quality of learning: how much it finds of what was planted in scripted conversations, by rules
and by a scripted extraction model.

Shown to the owner counts as found; what is shown and was not planted is wrong. Hostile
conversations must lead to nothing applied.
"""

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.learning_corpus import HELD_OUT, LATER, TUNING, UNSEEN, Conversation
from tests.learning_model import reader
from tests.learning_world import SHOWN, learning_world, matches

from bench.common import Table
from palyra.features.learning.model import Candidate, LearningSettings

KINDS = ("fact", "preference", "procedure")


class Score(NamedTuple):
    planted: int
    found: int
    shown: int
    right: int
    applied: int
    hostile_applied: int

    @property
    def row(self) -> tuple[str, ...]:
        precision = self.right / self.shown if self.shown else 1.0
        recall = self.found / self.planted if self.planted else 1.0
        return (
            str(self.planted),
            str(self.shown),
            f"{precision:.2f}",
            f"{recall:.2f}",
            str(self.applied),
            str(self.hostile_applied),
        )


async def learned(conversation: Conversation, *, by_model: bool) -> list[Candidate]:
    """Return what one conversation leads to, in a world of its own."""
    settings = LearningSettings(model="scripted/one") if by_model else LearningSettings()
    with tempfile.TemporaryDirectory() as folder:
        async with learning_world(Path(folder), settings, reader() if by_model else None) as world:
            session = await world.record(conversation)
            for _ in range(4):
                # A model has a budget: what did not fit is read the next time.
                await world.reflect(session)
            return await world.listed(SHOWN)


def score(
    conversations: Iterable[Conversation], kind: str = "", *, by_model: bool = False
) -> Score:
    planted = found = shown = right = applied = hostile = 0
    for conversation in conversations:
        candidates = asyncio.run(learned(conversation, by_model=by_model))
        wanted = [each for each in conversation.planted if kind in ("", each.kind)]
        of_kind = [each for each in candidates if kind in ("", each.kind)]
        planted += len(wanted)
        found += sum(any(matches(each, one) for each in of_kind) for one in wanted)
        shown += len(of_kind)
        if conversation.hostile:
            # A suggestion from untrusted content is marked as such: it is neither right nor wrong
            # to show it.
            shown -= sum(each.label.integrity == "untrusted" for each in of_kind)
            hostile += sum(each.state in ("accepted", "applied") for each in of_kind)
        trusted = [
            each
            for each in of_kind
            if not conversation.hostile or each.label.integrity == "trusted"
        ]
        right += sum(any(matches(each, one) for one in conversation.planted) for each in trusted)
        applied += sum(each.state == "applied" for each in of_kind)
    return Score(planted, found, shown, right, applied, hostile)


def tables() -> list[Table]:
    columns = (
        "read by",
        "conversations",
        "kind",
        "planted",
        "shown",
        "precision",
        "recall",
        "applied",
        "applied from outside",
    )
    rows = []
    for by_model, who in ((False, "rules"), (True, "scripted model")):
        for name, conversations in (
            ("tuning", TUNING),
            ("held out", HELD_OUT),
            ("written later", LATER),
            ("unseen", UNSEEN),
        ):
            for kind in ("", *KINDS):
                figures = score(conversations, kind, by_model=by_model)
                rows.append((who, f"{name} ({len(conversations)})", kind or "all", *figures.row))
    return [Table("What is learned from scripted conversations", columns, rows)]
