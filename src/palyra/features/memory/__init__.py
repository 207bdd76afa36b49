"""Memory: what is remembered, how it is searched, and what of it a run is told."""

from palyra.features.wiring import Wiring

_BEFORE_QUESTIONS = ("session.created", "message.received")


async def wire(w: Wiring) -> None:
    from palyra.agent.broadcast import Broadcast
    from palyra.agent.idle_gate import IdleGate
    from palyra.agent.ports import MemoryRecall
    from palyra.agent.runs import Runs
    from palyra.features.memory.embedding import IDLE_S, Embedding
    from palyra.features.memory.recall import Recalling, Transcripts
    from palyra.features.memory.service import Memory, MemorySettings
    from palyra.features.memory.tools import offer
    from palyra.models.embeddings import LocalEmbedder
    from palyra.store.database import Appended, Database
    from palyra.store.upkeep import Upkeep
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor
    from palyra.tools.catalogue import Catalogue

    db = w.get(Database)
    hub = w.get(Broadcast)
    embeddings = w.settings.get(MemorySettings).embeddings
    embedder = LocalEmbedder(idle_s=IDLE_S) if embeddings else None
    embedding = Embedding(db, embedder, w.get(IdleGate), attended=lambda: hub.watchers > 0)
    memory = Memory(db, w.get(Redactor), w.get(Clock), embedding, w.get(Upkeep).scrub)
    transcripts = w.add(Transcripts(db, embedding))
    w.add(memory)
    w.add(Recalling(memory), MemoryRecall)
    offer(w.get(Catalogue), db, memory, transcripts)

    async def start() -> None:
        embedding.start()
        # Whoever opens a page, a chat or a session, or writes in a channel, may ask soon.
        hub.on_watch.connect(embedding.warm)
        db.on_commit.connect(expect_questions)

    def expect_questions(appended: list[Appended]) -> None:
        if any(entry.kind in _BEFORE_QUESTIONS for entry in appended):
            embedding.warm()

    w.with_loop(lambda: w.get(Runs).on_end.connect(embedding.said))
    w.after_runs(start)
    w.on_close(embedding.close, after_runs=True)
