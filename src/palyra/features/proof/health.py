"""The watchdog's checks of the journal's proof: a checkpoint that cannot be made, and rows that
claim rights which nobody gave.
"""

from collections.abc import Sequence

from palyra.features.health.watchdog import HealthFinding, LookTime
from palyra.features.proof.anchors import Anchors
from palyra.features.proof.service import JournalProof
from palyra.features.proof.witness import Witness
from palyra.store.database import Database

_MOST_ROWS = 20


class ProofWatched:
    """`witness`: if this daemon cosigns the journals of others."""

    def __init__(
        self, proof: JournalProof, anchors: Anchors, db: Database, witness: Witness | None = None
    ) -> None:
        self._proof = proof
        self._witness = witness
        self._anchors = anchors
        self._db = db

    async def look(self, moment: LookTime) -> Sequence[HealthFinding]:
        return [*self._unsigned(), *self._behind(), *self._forged(), *self._refused()]

    def _refused(self) -> list[HealthFinding]:
        """The journals of others that changed their story: their owners are told by their own
        daemons, unless somebody else has those.
        """
        refused = self._witness.refused if self._witness is not None else {}
        return [
            HealthFinding(
                key=f"proof:witness:{origin}",
                domain="journal",
                summary=f"a journal that this daemon is a witness of was refused: {why}",
                severity="critical",
                fix="ask its owner to run palyra journal verify",
                stays=True,
            )
            for origin, why in list(refused.items())
        ]

    def _behind(self) -> list[HealthFinding]:
        return [
            HealthFinding(
                key=f"proof:anchor:{state.anchor.name}",
                domain="journal",
                summary=(
                    f"checkpoints do not reach the anchor {state.anchor.name}: {state.problem}"
                ),
                severity="critical" if state.forked else "warning",
                fix="palyra journal verify" if state.forked else "palyra journal key",
            )
            for state in self._anchors.states
            if state.behind
        ]

    def _forged(self) -> list[HealthFinding]:
        refused = list(self._db.seals.refused) if self._db.seals is not None else []
        return [
            HealthFinding(
                key=f"proof:right:{table}:{row}",
                domain="journal",
                summary=(
                    f"{row} in {table} claims a right that the daemon did not give: it was written"
                    " or changed by somebody else, and is not honoured"
                ),
                severity="critical",
                fix="palyra journal verify, and find out who can write the home folder",
                stays=True,
            )
            for table, row in refused[:_MOST_ROWS]
        ]

    def _unsigned(self) -> list[HealthFinding]:
        if not self._proof.problem:
            return []
        return [
            HealthFinding(
                key="proof:checkpoint",
                domain="journal",
                summary=f"the journal cannot be signed for: {self._proof.problem}",
                severity="critical" if self._proof.forged else "error",
                fix="palyra journal verify",
            )
        ]
