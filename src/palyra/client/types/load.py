"""Written by scripts/clients.py from the route table: types of the verbs about load."""

from msgspec import Struct

__all__ = ["Load", "LoadSample"]


class LoadSample(Struct, frozen=True, kw_only=True):
    """`cpu_bps` is the daemon's processor time since the sample before it, in ten thousandths of
    one processor; `load_bps` is the machine's load over the last minute, for each of its
    processors. `queued` and `running` count background tasks.
    """

    time_ms: int
    cpu_bps: int
    load_bps: int
    memory_bytes: int
    disk_free_bytes: int
    disk_total_bytes: int
    runs: int
    queued: int
    running: int
    journal_entries: int
    journal_bytes: int


class Load(Struct, frozen=True, kw_only=True):
    """Samples of the last hours, oldest first; the last is of now."""

    samples: list[LoadSample]
