"""The SQLite schema: its newest steps, and all of them in order. `entries` is the history and can
only grow; every other table is what its events imply.
"""

from palyra.store.migrations import Migration
from palyra.store.migrations_1_to_10 import MIGRATIONS_1_TO_10
from palyra.store.migrations_11_to_17 import MIGRATIONS_11_TO_17

MIGRATIONS = (
    *MIGRATIONS_1_TO_10,
    *MIGRATIONS_11_TO_17,
    Migration(
        18,
        "the next certificates of workers",
        (
            """CREATE TABLE worker_renewals (
                name TEXT PRIMARY KEY,
                fingerprint TEXT NOT NULL,
                request TEXT NOT NULL,
                certificate TEXT NOT NULL,
                asked_ms INTEGER NOT NULL
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        19,
        "the workspace that a client's token is bound to",
        ("ALTER TABLE tokens ADD COLUMN workspace TEXT NOT NULL DEFAULT ''",),
    ),
    Migration(
        20,
        "where the conversation of a branch begins, as a number that can be counted",
        (
            """WITH RECURSIVE up (id, at, total) AS (
                SELECT session_id, parent_id, parent_seq FROM sessions WHERE fold_from = -9007199254740992
                UNION ALL
                SELECT up.id, s.parent_id, up.total + s.parent_seq FROM up JOIN sessions s ON s.session_id = up.at
                    WHERE up.at <> '' AND s.parent_id <> ''
            )
            UPDATE sessions SET fold_from = 1 - (SELECT max(total) FROM up WHERE up.id = session_id)
                WHERE fold_from = -9007199254740992""",  # noqa: E501
        ),
    ),
    Migration(
        21,
        "notes for agents that an owner has accepted",
        (
            """CREATE TABLE accepted_notes (
                workspace TEXT NOT NULL,
                file TEXT NOT NULL,
                digest TEXT NOT NULL,
                text TEXT NOT NULL,
                accepted_by TEXT NOT NULL,
                accepted_ms INTEGER NOT NULL,
                position INTEGER NOT NULL,
                PRIMARY KEY (workspace, file, digest)
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        22,
        "which model calls were counted by us, because no provider said what they used",
        ("ALTER TABLE usage ADD COLUMN estimated INTEGER NOT NULL DEFAULT 0",),
    ),
    Migration(
        23,
        "what model calls wrote to their provider's cache",
        ("ALTER TABLE usage ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0",),
    ),
    Migration(
        24,
        "runs that wait for a provider, and when each model is asked again",
        (
            """CREATE TABLE run_waits (
                run_id TEXT PRIMARY KEY,
                target TEXT NOT NULL,
                accepted_position INTEGER NOT NULL,
                provider TEXT NOT NULL,
                model TEXT NOT NULL,
                cause TEXT NOT NULL,
                message TEXT NOT NULL,
                since_ms INTEGER NOT NULL,
                next_try_ms INTEGER NOT NULL,
                deadline_ms INTEGER NOT NULL,
                attempt INTEGER NOT NULL
            ) WITHOUT ROWID""",
            "CREATE INDEX run_waits_in_order ON run_waits (target, accepted_position)",
            "CREATE INDEX run_waits_by_deadline ON run_waits (target, deadline_ms)",
            """CREATE TABLE provider_waits (
                target TEXT PRIMARY KEY,
                cause TEXT NOT NULL,
                message TEXT NOT NULL,
                since_ms INTEGER NOT NULL,
                next_try_ms INTEGER NOT NULL,
                attempt INTEGER NOT NULL
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        25,
        "models that were found to take no tools",
        (
            """CREATE TABLE tool_modes (
                provider TEXT NOT NULL,
                model TEXT NOT NULL,
                settings TEXT NOT NULL,
                why TEXT NOT NULL,
                found_ms INTEGER NOT NULL,
                PRIMARY KEY (provider, model)
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        26,
        "the model that a session's runs are asked of",
        ("ALTER TABLE sessions ADD COLUMN model TEXT NOT NULL DEFAULT ''",),
    ),
    Migration(
        27,
        "versions of links, the Merkle tree in tiles, and its signed checkpoints",
        (
            "ALTER TABLE entries ADD COLUMN link INTEGER NOT NULL DEFAULT 1",
            # The hashes of up to 256 complete subtrees, side by side; the last of a level grows.
            """CREATE TABLE tree_tiles (
                level INTEGER NOT NULL,
                idx INTEGER NOT NULL,
                hashes BLOB NOT NULL,
                PRIMARY KEY (level, idx)
            )""",
            # A signed note, with the cosignatures that came in later.
            """CREATE TABLE checkpoints (
                size INTEGER PRIMARY KEY,
                time_ms INTEGER NOT NULL,
                note TEXT NOT NULL
            )""",
        ),
    ),
    Migration(
        28,
        "seals of the rows that give rights",
        tuple(
            f"ALTER TABLE {table} ADD COLUMN mac BLOB NOT NULL DEFAULT x''"
            for table in (
                "grants",
                "tokens",
                "workers",
                "worker_renewals",
                "worker_codes",
                "channel_people",
                "channel_pairings",
                "accepted_notes",
            )
        ),
    ),
    Migration(
        29,
        "seals of schedules, whose runs get what was approved beforehand",
        ("ALTER TABLE schedules ADD COLUMN mac BLOB NOT NULL DEFAULT x''",),
    ),
    Migration(
        30,
        "the policies that decided, by the digest that their decisions name",
        ("CREATE TABLE policy_sets (version TEXT PRIMARY KEY, files BLOB NOT NULL)",),
    ),
    Migration(
        31,
        "rows that give rights carry the entry that made them; seals of who may ask and answer",
        (
            *(
                f"ALTER TABLE {table} ADD COLUMN mac BLOB NOT NULL DEFAULT x''"
                for table in ("sessions", "approvals", "approval_routes", "channel_settings")
            ),
            *(
                f"ALTER TABLE {table} ADD COLUMN {column}"
                for table in (
                    "grants",
                    "tokens",
                    "workers",
                    "worker_renewals",
                    "worker_codes",
                    "channel_people",
                    "channel_pairings",
                    "accepted_notes",
                    "schedules",
                    "sessions",
                    "approvals",
                    "approval_routes",
                    "channel_settings",
                )
                for column in (
                    "entry INTEGER NOT NULL DEFAULT 0",
                    "entry_hash BLOB NOT NULL DEFAULT x''",
                )
            ),
        ),
    ),
    Migration(
        32,
        "labels of files that were written after untrusted content was read; uses of grants",
        (
            "CREATE TABLE grant_uses (approval_id TEXT NOT NULL, used_ms INTEGER NOT NULL)",
            "CREATE INDEX grant_uses_by_grant ON grant_uses (approval_id, used_ms)",
            """CREATE TABLE file_labels (
                path TEXT PRIMARY KEY,
                digest TEXT NOT NULL,
                label BLOB NOT NULL,
                session_id TEXT NOT NULL,
                run_id TEXT NOT NULL,
                labelled_ms INTEGER NOT NULL
            )""",
            "CREATE INDEX file_labels_digest ON file_labels (digest) WHERE digest <> ''",
        ),
    ),
    Migration(
        33,
        "what tools returned can be searched like what was said",
        (
            # Results have places of their own, from 2^40 on: they stand between nobody's words.
            "CREATE INDEX entries_results ON entries (position) WHERE kind = 'tool.finished'",
            "CREATE INDEX turns_of_talk ON turns (position) WHERE place < 1099511627776",
            "CREATE INDEX turns_of_results ON turns (position) WHERE place >= 1099511627776",
            "CREATE INDEX archived_calls ON archived_said (run_id) WHERE kind = 'tool.proposed'",
            "DROP VIEW turns_searched",
            """CREATE VIEW turns_searched AS SELECT spot, owner, session_id AS source, place, 10000 AS confidence_bps,
                time_ms AS valid_from_ms, time_ms AS created_ms, embedded_by, 0 AS expires_ms, 0 AS valid_until_ms,
                behind - first AS size FROM turns""",  # noqa: E501
        ),
    ),
    Migration(
        34,
        "what a remembered statement is about, so that a later one about the same is noticed",
        (
            # NULL: nobody has looked yet. Empty: nothing that could be contradicted.
            "ALTER TABLE memory_items ADD COLUMN claim BLOB",
            """CREATE INDEX memory_items_by_claim ON memory_items (owner, claim)
                WHERE state = 'active'""",
            "CREATE INDEX memory_items_unclaimed ON memory_items (memory_id) WHERE claim IS NULL",
        ),
    ),
    Migration(
        35,
        "conversations of programs that send all of it each time, by the digest of what was sent",
        (
            """CREATE TABLE caller_histories (
                digest BLOB NOT NULL,
                run_id TEXT NOT NULL,
                seq INTEGER NOT NULL,
                session_id TEXT NOT NULL,
                instructions BLOB NOT NULL,
                PRIMARY KEY (digest, run_id, seq)
            ) WITHOUT ROWID""",
            "CREATE INDEX caller_histories_by_session ON caller_histories (session_id)",
        ),
    ),
)
