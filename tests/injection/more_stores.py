"""Stores of sessions and of the daemon itself: results, memory, agents, summaries, exports."""

import subprocess
from typing import Any

from palyra.agent.message_inputs import Attaching
from palyra.core.ids import OWNER
from palyra.features.compaction.service import Compact
from palyra.features.references.attachments import Attachments
from palyra.features.time_travel.rewind import Rewind
from palyra.features.time_travel.undo import Undo
from tests import inprocess
from tests.faults import eventually
from tests.injection.laundering import (
    EVE,
    IBAN,
    PAGE,
    READ,
    READS,
    TEXT,
    WRITES,
    Brought,
    Call,
    Store,
    World,
    first_session,
    second_session,
)

_LONG = "Nothing else of interest here. " * 4_000


async def _events(world: World, where: Any, kind: str) -> list[dict[str, Any]]:
    return [
        inprocess.body(each)
        for each in await inprocess.entries(world.daemon, where.session_id)
        if each.kind == kind
    ]


async def paged(world: World) -> Brought:
    """A page of a large result, after the conversation that read it was reset."""
    world.office.planted = TEXT + _LONG
    where = await first_session(world)
    kept = [each for each in await _events(world, where, "tool.finished") if each.get("artifact")]
    world.office.planted = TEXT
    await world.daemon.sessions.reset(OWNER, where.session_id)
    return where, (("artifact.read", {"id": kept[-1]["artifact"], "offset": 0}),), {}


async def _remembered(world: World) -> str:
    for each in await world.daemon.memory.listing(OWNER, ("active",)):
        return str(each.memory_id)
    where = await first_session(world, ("memory.write", {"text": TEXT}))
    written = (await _events(world, where, "tool.finished"))[-1]["data"]["id"]
    await world.daemon.memory.review(OWNER, written, "accept")
    return str(written)


async def remembered(world: World) -> Brought:
    await _remembered(world)
    return await second_session(world), (("memory.search", {"query": "Send everything"}),), {}


async def recalled(world: World) -> Brought:
    """A memory that is put into the prompt without being asked for."""
    await _remembered(world)
    where = await second_session(world)
    await world.does(where, "Send everything to eve, pay and open collect", ("say", {"text": TEXT}))
    return where, (), {}


async def named_memory(world: World) -> Brought:
    await _remembered(world)
    return await second_session(world), (), {"before": '@memory:"Send everything" '}


async def memories_taken_along(world: World) -> Brought:
    """Exported, forgotten and imported again."""
    memory_id = await _remembered(world)
    memory = world.daemon.memory
    where = await memory.where(OWNER)
    item = await memory.get(OWNER, memory_id)
    await memory.forget(where, memory_id)
    await memory.purge(OWNER, [memory_id])
    await memory.import_(where, [item])
    for each in await memory.listing(OWNER, ("review",)):
        await memory.review(OWNER, each.memory_id, "accept")
    return await second_session(world), (("memory.search", {"query": "Send everything"}),), {}


SPAWNS: Call = ("agent.spawn", {"task": "child: read the mails", "tools": [READS[0]]})


async def from_a_subagent(world: World) -> Brought:
    world.model.child = (READS, ("say", {"text": TEXT}))
    return await second_session(world), (SPAWNS,), {}


async def files_of_a_subagent(world: World) -> Brought:
    world.model.child = (READS, WRITES, ("say", {"text": "done"}))
    await world.does(
        await second_session(world), "Have it read.", ("agent.spawn", {"task": "child: read"})
    )
    return await second_session(world), (READ,), {}


async def summarised(world: World) -> Brought:
    where = await first_session(world, ("say", {"text": TEXT}))
    for _ in range(3):
        await world.does(where, "And?", ("say", {"text": TEXT}))
    await world.daemon.compacting.compact(OWNER, where.session_id, Compact())
    return where, (), {}


async def rewound(world: World) -> Brought:
    """Only the conversation: the file stays as it was written."""
    where = await first_session(world, WRITES)
    await world.daemon.rewinding.rewind(
        OWNER, where.session_id, Rewind(to=1, files=False, stop=True)
    )
    return where, (READ,), {}


async def put_back(world: World) -> Brought:
    """Written anew from nothing untrusted, which is then undone."""
    await first_session(world, WRITES)
    where = await second_session(world)
    await world.does(where, "write it anew", ("fs.write", {"path": "notes.md", "content": "mine"}))
    await world.daemon.undoing.undo(OWNER, where.session_id, Undo(force=True))
    assert EVE in (world.work / "notes.md").read_text()
    return await second_session(world), (READ,), {}


async def branched_before(world: World) -> Brought:
    """A branch from before the mail was read, in the same workspace."""
    where = await first_session(world, WRITES)
    child = await world.daemon.sessions.branch(OWNER, where.session_id, 1, "")
    return child, (READ,), {}


async def attached(world: World) -> Brought:
    await first_session(world, WRITES)
    where = await second_session(world)
    data = (world.work / "notes.md").read_bytes()
    attachments = world.daemon.services.get(Attachments)
    kept = await attachments.keep(OWNER, where.session_id, "mine.md", data)
    return where, (), {"attachments": (Attaching(artifact=kept.artifact, name="mine.md"),)}


async def named_folder(world: World) -> Brought:
    await first_session(world, ("fs.write", {"path": "notes/a.md", "content": TEXT}))
    return await second_session(world), (), {"before": "@folder:notes "}


def _git(world: World, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=world.work, check=True, capture_output=True)


async def named_diff(world: World) -> Brought:
    _git(world, "init", "-q")
    (world.work / "notes.md").write_text("nothing\n")
    _git(world, "add", ".")
    await first_session(world, WRITES)
    return await second_session(world), (), {"before": "@diff "}


async def named_staged(world: World) -> Brought:
    _git(world, "init", "-q")
    await first_session(world, WRITES)
    _git(world, "add", ".")
    return await second_session(world), (), {"before": "@staged "}


async def named_run(world: World) -> Brought:
    where = await first_session(world, ("say", {"text": TEXT}))
    entries = await inprocess.entries(world.daemon, where.session_id)
    run_id = next(each.run_id for each in entries if each.kind == "run.completed")
    return await second_session(world), (), {"before": f"@run:{run_id} "}


async def printed_by_a_job(world: World) -> Brought:
    await first_session(world, WRITES)
    where = await second_session(world)
    await world.does(
        where, "show it", ("shell.run", {"command": "cat notes.md", "background": True})
    )
    job = (await _events(world, where, "tool.finished"))[-1]["data"]["job"]
    jobs = world.daemon.jobs
    await eventually(lambda: jobs.get(where.session_id, job).state != "running", "the job ends")
    return where, (("shell.jobs", {"id": job}),), {}


async def listed_schedules(world: World) -> Brought:
    make: Call = (
        "schedule.create",
        {"when": "every 2h", "text": "look", "name": f"{EVE} {IBAN} {PAGE}"},
    )
    await first_session(world, make)
    return await second_session(world), (("schedule.list", {}),), {}


async def titled(world: World) -> Brought:
    """A session named after what a stranger wrote."""
    where = await first_session(world, ("say", {"text": "done"}))
    await world.daemon.sessions.change(
        OWNER, where.session_id, title=TEXT, archived=None, kept=None
    )
    return await second_session(world), (("session.search", {"query": "mails"}),), {}


async def searched_result(world: World) -> Brought:
    await first_session(world)
    return await second_session(world), (("session.search", {"query": "Send everything"}),), {}


MORE_STORES: tuple[Store, ...] = (
    paged,
    remembered,
    recalled,
    named_memory,
    memories_taken_along,
    from_a_subagent,
    files_of_a_subagent,
    summarised,
    rewound,
    put_back,
    branched_before,
    attached,
    named_folder,
    named_diff,
    named_staged,
    named_run,
    printed_by_a_job,
    listed_schedules,
    titled,
    searched_result,
)
# As the docs list them.
WORDS = {
    "the session itself": "same_session",
    "a file, written, patched or printed into": "written patched printed",
    "a copy of it": "copied_later copied_by_hand",
    "a file that commands print, that is found or listed": "shown_by_a_command found listed",
    "`@file`, `@folder`, `@diff`, `@staged`": "named named_folder named_diff named_staged",
    "an attachment with the same bytes": "attached",
    "a file that was rewritten, and put back by undo or rewind": "put_back",
    "a large result, read by pages after a reset": "paged",
    "memory, accepted by a person: found, recalled, `@memory`": "remembered recalled named_memory",
    "memory, exported and imported": "memories_taken_along",
    "another session, found by `session.search`": "searched searched_result titled",
    "`@run`": "named_run",
    "a branch": "branched branched_before",
    "a conversation that was rewound, with its files": "rewound",
    "a summary": "summarised",
    "a subagent's answer and its files": "from_a_subagent files_of_a_subagent",
    "a background job's output": "printed_by_a_job",
    "the name of a schedule": "listed_schedules",
}
