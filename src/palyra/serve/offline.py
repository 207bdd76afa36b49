"""Reading of a journal while no daemon runs, or beside one that does: read a run, and replay it.

The rule: the journal is opened for reading only, and nothing that is made here can act.
"""

from collections.abc import Mapping
from pathlib import Path

from palyra.core.errors import NotFound
from palyra.features.time_travel.replay import recording as recordings
from palyra.features.time_travel.replay.recording import Recording
from palyra.serve import config
from palyra.serve.wiring import tools as parts_tools
from palyra.store import runs
from palyra.store.database import Tx
from palyra.store.sqlite import Sqlite
from palyra.tools.catalogue import Catalogue


def recording(home: Path, wanted: str) -> Recording:
    """A run or a session of this home's journal."""
    path = home / "journal.db"
    if not path.exists():
        raise NotFound(
            f"there is no journal at {path}: name another home folder with --home", path=str(path)
        )
    connection = Sqlite(path).open_reader()
    try:
        connection.begin_read()
        return recordings.read(Tx(connection, 0), wanted)
    finally:
        connection.end_read()
        connection.close()


def recent_runs(home: Path, limit: int) -> list[str]:
    """The ids of the runs that ended last."""
    connection = Sqlite(home / "journal.db").open_reader()
    try:
        connection.begin_read()
        return [each.run_id for each in runs.newest_ended(Tx(connection, 0), limit)]
    finally:
        connection.end_read()
        connection.close()


def tools(home: Path, env: Mapping[str, str]) -> Catalogue:
    """Return our own tools as they are described and as they read arguments."""
    return parts_tools.to_look_at(config.load(home, env))
