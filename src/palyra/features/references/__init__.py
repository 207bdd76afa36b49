"""References and attachments: what a message brings with it beyond its words."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.authorize import Authorizer
    from palyra.agent.direct_tools import ByHand
    from palyra.agent.message_inputs import MessageInputs
    from palyra.agent.session_cache import SessionCache
    from palyra.features.references.attachments import Attachments
    from palyra.features.references.kinds import Kinds
    from palyra.features.references.message_inputs import Enclosures
    from palyra.features.references.service import References
    from palyra.policy.store import PolicyStore
    from palyra.store.database import Database
    from palyra.system.redactor import Redactor
    from palyra.tools.catalogue import Catalogue

    db, redactor = w.get(Database), w.get(Redactor)
    by_hand = ByHand(w.get(Catalogue), w.get(Authorizer), w.get(PolicyStore))
    references = References(db, w.get(SessionCache), Kinds(db, by_hand, w.guard), redactor)
    attachments = w.add(Attachments(db, redactor))
    w.add(Enclosures(references, attachments), MessageInputs)
