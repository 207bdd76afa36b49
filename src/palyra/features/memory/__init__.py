"""Memory: what is remembered, how it is searched, and what of it a run is told."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.idle_gate import IdleGate
    from palyra.agent.ports import MemoryRecall
    from palyra.agent.runs import Runs
    from palyra.features.memory.embedding import Embedding
    from palyra.features.memory.offer import offer
    from palyra.features.memory.recall import Recalling
    from palyra.features.memory.service import Memory, MemorySettings
    from palyra.features.memory.transcripts import Transcripts
    from palyra.models.embeddings import LocalEmbedder
    from palyra.store.database import Database
    from palyra.store.sqlite_files import fold_log
    from palyra.system.clock import Clock
    from palyra.system.redactor import Redactor
    from palyra.tools.catalogue import Catalogue

    db = w.get(Database)
    embedder = LocalEmbedder() if w.settings.get(MemorySettings).embeddings else None
    embedding = Embedding(db, embedder, w.get(IdleGate))
    memory = Memory(db, w.get(Redactor), w.get(Clock), embedding, lambda: fold_log(w.journal))
    transcripts = w.add(Transcripts(db, embedding))
    w.add(memory)
    w.add(Recalling(memory), MemoryRecall)
    offer(w.get(Catalogue), db, memory, transcripts)

    async def start() -> None:
        embedding.start()

    w.with_loop(lambda: w.get(Runs).on_end.append(embedding.said))
    w.after_runs(start)
    w.on_close(embedding.close, after_runs=True)
