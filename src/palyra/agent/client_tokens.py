"""Clients: programs with a token of scope `client`. A client may ask; it may not approve, and it
sees its own sessions only.

The doors admit a client to the routes that are marked for it. What such a route names is checked
here, for every door.
"""

from collections.abc import Mapping

from msgspec import structs

from palyra.agent.sessions import Resolve
from palyra.core.errors import NotFound
from palyra.core.verdicts import Origin
from palyra.store import runs, sessions
from palyra.store.database import Database, Tx
from palyra.store.tokens import Token


async def check(db: Database, token: Token, names: Mapping[str, str]) -> None:
    """Raise NotFound if a client names a `session_id` or a `run_id` that is not its own."""
    if token.scope != "client":
        return
    session_id, run_id = names.get("session_id", ""), names.get("run_id", "")
    if session_id:
        await db.read(lambda tx: check_session(tx, token, session_id))
    if run_id:
        await db.read(lambda tx: check_run(tx, token, run_id))


def check_session(tx: Tx, token: Token, session_id: str) -> None:
    found = sessions.find(tx, session_id=session_id)
    # Somebody else's session looks like none: a client learns nothing about it.
    if token.scope == "client" and (
        found is None or found.owner != token.principal or found.device != token.device
    ):
        raise NotFound(f"there is no session {session_id}", session_id=session_id)


def check_run(tx: Tx, token: Token, run_id: str) -> None:
    if token.scope != "client":
        return
    found = runs.find(tx, run_id)
    if found is None:
        raise NotFound(f"there is no run {run_id}", run_id=run_id)
    check_session(tx, token, found.session_id)


def resolved(token: Token, wanted: Resolve) -> Resolve:
    """Return what a caller wants, with what its token decides: a client's mark, its own keys, its
    workspace.
    """
    if token.scope != "client":
        return wanted
    key = f"{token.device}/{wanted.key}" if wanted.key else ""
    return structs.replace(
        wanted, key=key, device=token.device, workspace=token.workspace, channel=""
    )


def origin_of(token: Token, *, attended: bool) -> Origin:
    """Return the origin of what a caller submits. A program cannot claim that a person is
    present.
    """
    return "interactive" if attended and token.scope != "client" else "api"
