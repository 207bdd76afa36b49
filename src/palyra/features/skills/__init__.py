"""Skills: what the agent was taught, and the WebAssembly tools that come with it."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.ports import SkillIndex
    from palyra.core.ports import CallContext
    from palyra.features.skills import host
    from palyra.features.skills.host import SecretRequest, World
    from palyra.features.skills.registry import SkillRegistry
    from palyra.features.vault.service import Vault
    from palyra.store.database import Database
    from palyra.system.redactor import Redactor
    from palyra.tools.catalogue import Catalogue

    async def secret(asked: SecretRequest, context: CallContext) -> str:
        return await w.get(Vault).resolve(
            f"vault:{asked.name}",
            principal=context.principal,
            session=context.session_id,
            tool=asked.tool,
            host=asked.host.partition(":")[0] if asked.host else None,
            skill=asked.skill,
        )

    world = World(w.guard, host.http(w.resolver), secret)
    registry = SkillRegistry(
        w.get(Database), w.get(Catalogue), w.get(Redactor), w.home / "skills", world
    )
    w.add(registry, SkillIndex)
    w.notes.append(lambda: registry.notes)
    await registry.open()
