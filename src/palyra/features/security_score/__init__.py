"""The security score: how often people are asked, what runs without a question, and which grants
would save them questions.
"""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.features.security_score.service import SecurityScores
    from palyra.policy.store import PolicyStore
    from palyra.store.database import Database
    from palyra.system.clock import Clock

    w.add(SecurityScores(w.get(Database), w.get(PolicyStore), w.get(Clock)))
