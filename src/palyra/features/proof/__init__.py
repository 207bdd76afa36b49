"""Proof: signed checkpoints over the journal, proofs for strangers, anchors outside the home."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.ports import JournalCheckpoints
    from palyra.core.errors import Unavailable
    from palyra.core.ids import SYSTEM
    from palyra.features.proof.anchors import Anchors, parse
    from palyra.features.proof.service import JournalProof, ProofSettings
    from palyra.features.proof.witness import open_witness
    from palyra.policy.store import PolicyStore
    from palyra.store.database import Database
    from palyra.store.log_keys import LogKeys, remember_anchors, remember_witnesses
    from palyra.system.clock import Clock

    settings = w.settings.get(ProofSettings)
    keys = LogKeys(w.home / "keys", settings.origin, keyring=settings.keyring)

    proof = w.add(
        JournalProof(
            w.get(Database), w.journal, keys, settings, lambda: w.get(PolicyStore).current.texts
        ),
        JournalCheckpoints,
    )

    async def say(channel: str, conversation: str, text: str, message_id: str) -> None:
        # Channels are wired later, and made when they are wanted.
        from palyra.features.channels.lazy import LateChannels
        from palyra.features.channels.views import ChatPlace

        late = w.find(LateChannels)
        if late is None:
            raise Unavailable(f"there is no channel {channel} to send checkpoints to")
        place = ChatPlace(channel, conversation)
        await late.now.say(SYSTEM, place, text, reply_id=message_id)

    if settings.witness_for:
        clock = w.get(Clock)
        w.add(open_witness(w.home, settings.witness_for, lambda: clock.now_ms() // 1000))
    anchors = w.add(
        Anchors(
            [parse(each, say) for each in settings.anchors],
            proof.newest,
            proof.continues,
            proof.cosigned,
        )
    )
    remember_witnesses(w.journal, anchors.witnesses)
    remember_anchors(w.journal, anchors.readable)
    proof.on_checkpoint.connect(anchors.tell)

    async def start() -> None:
        await proof.start()
        anchors.start()

    w.after_runs(start)
    # Closed last: it takes the last checkpoint away.
    w.on_close(anchors.close, after_runs=True)
    w.on_close(proof.close, after_runs=True)
