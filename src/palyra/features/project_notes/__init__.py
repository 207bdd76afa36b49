"""Notes for agents in a workspace: reviewed by the owner, shown to the model once accepted."""

from palyra.features.wiring import Wiring


async def wire(w: Wiring) -> None:
    from palyra.agent.ports import NotesForAgents
    from palyra.features.notices.service import Notices
    from palyra.features.project_notes.prompt import ProjectFiles
    from palyra.features.project_notes.service import ProjectNotes
    from palyra.store.database import Database
    from palyra.system.redactor import Redactor

    notes = w.add(ProjectNotes(w.get(Database), w.get(Notices), w.get(Redactor)))
    w.add(ProjectFiles(w.get(Redactor), notes), NotesForAgents)
