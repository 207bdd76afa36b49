"""OpenAI's API: programs that know it talk to the agent as to a model."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.gateway import Gateway
    from palyra.agent.sessions import Sessions
    from palyra.features.openai_api import client_tools
    from palyra.features.openai_api.idle_sessions import CallerSettings, IdleSessions
    from palyra.features.openai_api.sessions import Callers
    from palyra.features.references.message_inputs import Enclosures
    from palyra.features.tasks.worker import Tasks
    from palyra.store.database import Database
    from palyra.system.redactor import Redactor

    def with_loop() -> None:
        inputs, redactor = w.get(Enclosures), w.get(Redactor)
        w.add(Callers(w.get(Database), w.get(Gateway), w.get(Sessions), inputs, redactor))

    client_tools.register(w.get(Tasks))
    idle = IdleSessions(w.get(Database), w.settings.get(CallerSettings))
    idle.register(w.get(Tasks))
    w.after_runs(idle.start)
    w.with_loop(with_loop)
