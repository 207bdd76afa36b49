"""The tools by which the agent remembers and looks back."""

from palyra.features.memory import session_search
from palyra.features.memory import tools as memory_tools
from palyra.features.memory.service import Memory
from palyra.features.memory.tool_port import SessionKeeper
from palyra.features.memory.transcripts import Transcripts
from palyra.store.database import Database
from palyra.tools.catalogue import Catalogue


def offer(catalogue: Catalogue, db: Database, memory: Memory, transcripts: Transcripts) -> None:
    kept = memory_tools.tools(SessionKeeper(db, memory))
    catalogue.renew("memory", (*kept, *session_search.tools(transcripts)))
