"""Later steps of the schema. What a journal may have gone through never changes."""

from palyra.store.migrations import Migration

MIGRATIONS_11_TO_17 = (
    Migration(
        11,
        "schedules",
        (
            """CREATE TABLE schedules (
                schedule_id TEXT PRIMARY KEY,
                owner TEXT NOT NULL,
                state TEXT NOT NULL,
                next_ms INTEGER NOT NULL,
                body BLOB NOT NULL
            ) WITHOUT ROWID""",
            "CREATE INDEX schedules_by_owner ON schedules (owner)",
            """CREATE TABLE firings (
                schedule_id TEXT NOT NULL,
                due_ms INTEGER NOT NULL,
                state TEXT NOT NULL,
                run_id TEXT NOT NULL DEFAULT '',
                session_id TEXT NOT NULL DEFAULT '',
                note TEXT NOT NULL DEFAULT '',
                artifact TEXT NOT NULL DEFAULT '',
                updated_ms INTEGER NOT NULL,
                PRIMARY KEY (schedule_id, due_ms)
            ) WITHOUT ROWID""",
            (
                "CREATE INDEX firings_open ON firings (schedule_id, due_ms) WHERE state IN ('due',"
                " 'queued', 'started')"
            ),
            "CREATE INDEX firings_by_run ON firings (run_id) WHERE run_id <> ''",
            # Calls of webhooks that were taken, so that nobody makes one twice.
            """CREATE TABLE hook_calls (
                schedule_id TEXT NOT NULL,
                signature BLOB NOT NULL,
                called_ms INTEGER NOT NULL,
                PRIMARY KEY (schedule_id, signature)
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        12,
        "channels",
        (
            # What came in, whole in `body` but for its files; the other columns are what is asked
            # for.
            """CREATE TABLE channel_messages (
                number INTEGER PRIMARY KEY,
                message_id TEXT NOT NULL UNIQUE,
                connector TEXT NOT NULL,
                native_id TEXT NOT NULL,
                conversation TEXT NOT NULL,
                thread TEXT NOT NULL,
                sender TEXT NOT NULL,
                state TEXT NOT NULL,
                reason TEXT NOT NULL DEFAULT '',
                principal TEXT NOT NULL DEFAULT '',
                session_id TEXT NOT NULL DEFAULT '',
                run_id TEXT NOT NULL DEFAULT '',
                files INTEGER NOT NULL DEFAULT 0,
                received_ms INTEGER NOT NULL,
                ended_ms INTEGER NOT NULL DEFAULT 0,
                body BLOB NOT NULL
            )""",
            (
                "CREATE UNIQUE INDEX channel_messages_native ON channel_messages (connector,"
                " native_id)"
            ),
            """CREATE INDEX channel_messages_open ON channel_messages (connector, sender)
                WHERE state IN ('received', 'held', 'queued')""",
            "CREATE INDEX channel_messages_by_run ON channel_messages (run_id) WHERE run_id <> ''",
            (
                "CREATE INDEX channel_messages_by_sender ON channel_messages (connector, sender,"
                " received_ms)"
            ),
            """CREATE TABLE channel_files (
                message_id TEXT NOT NULL,
                number INTEGER NOT NULL,
                name TEXT NOT NULL,
                media_type TEXT NOT NULL,
                data BLOB NOT NULL,
                PRIMARY KEY (message_id, number)
            )""",
            # What happened to each message, step by step.
            """CREATE TABLE channel_steps (
                number INTEGER PRIMARY KEY,
                message_id TEXT NOT NULL,
                time_ms INTEGER NOT NULL,
                step TEXT NOT NULL,
                detail TEXT NOT NULL
            )""",
            "CREATE INDEX channel_steps_by_message ON channel_steps (message_id)",
            # What goes out, one row for each message of the platform; `doubtful`: it may have been
            # sent twice.
            """CREATE TABLE channel_outbox (
                number INTEGER PRIMARY KEY,
                reply_id TEXT NOT NULL,
                part INTEGER NOT NULL,
                parts INTEGER NOT NULL,
                message_id TEXT NOT NULL,
                connector TEXT NOT NULL,
                conversation TEXT NOT NULL,
                thread TEXT NOT NULL,
                kind TEXT NOT NULL,
                state TEXT NOT NULL,
                attempts INTEGER NOT NULL DEFAULT 0,
                ready_ms INTEGER NOT NULL DEFAULT 0,
                error TEXT NOT NULL DEFAULT '',
                native_id TEXT NOT NULL DEFAULT '',
                doubtful INTEGER NOT NULL DEFAULT 0,
                created_ms INTEGER NOT NULL,
                ended_ms INTEGER NOT NULL DEFAULT 0,
                body BLOB NOT NULL
            )""",
            "CREATE UNIQUE INDEX channel_outbox_key ON channel_outbox (reply_id, part)",
            (
                "CREATE INDEX channel_outbox_open ON channel_outbox (connector, number) WHERE state"
                " IN ('waiting', 'sending')"
            ),
            "CREATE INDEX channel_outbox_dead ON channel_outbox (number) WHERE state = 'dead'",
            (
                "CREATE INDEX channel_outbox_by_message ON channel_outbox (message_id) WHERE"
                " message_id <> ''"
            ),
            # Who writes to us: a sender is linked to a person (`principal`), paired, or neither.
            """CREATE TABLE channel_people (
                connector TEXT NOT NULL,
                sender TEXT NOT NULL,
                display TEXT NOT NULL,
                principal TEXT NOT NULL DEFAULT '',
                paired_ms INTEGER NOT NULL DEFAULT 0,
                paired_until_ms INTEGER NOT NULL DEFAULT 0,
                revoked_ms INTEGER NOT NULL DEFAULT 0,
                granted_by TEXT NOT NULL DEFAULT '',
                conversation TEXT NOT NULL DEFAULT '',
                seen_ms INTEGER NOT NULL DEFAULT 0,
                PRIMARY KEY (connector, sender)
            ) WITHOUT ROWID""",
            (
                "CREATE INDEX channel_people_by_principal ON channel_people (principal) WHERE"
                " principal <> ''"
            ),
            """CREATE TABLE channel_pairings (
                pairing_id TEXT PRIMARY KEY,
                connector TEXT NOT NULL,
                kind TEXT NOT NULL,
                sender TEXT NOT NULL,
                display TEXT NOT NULL,
                conversation TEXT NOT NULL,
                thread TEXT NOT NULL,
                code BLOB NOT NULL,
                state TEXT NOT NULL,
                grant_ms INTEGER NOT NULL,
                created_ms INTEGER NOT NULL,
                expires_ms INTEGER NOT NULL,
                settled_ms INTEGER NOT NULL DEFAULT 0,
                settled_by TEXT NOT NULL DEFAULT ''
            ) WITHOUT ROWID""",
            (
                "CREATE UNIQUE INDEX channel_pairings_code ON channel_pairings (code) WHERE state ="
                " 'pending'"
            ),
            (
                "CREATE INDEX channel_pairings_by_sender ON channel_pairings (connector, sender,"
                " created_ms)"
            ),
            """CREATE TABLE channel_tries (
                connector TEXT NOT NULL,
                sender TEXT NOT NULL,
                wrong INTEGER NOT NULL,
                locked_until_ms INTEGER NOT NULL,
                PRIMARY KEY (connector, sender)
            ) WITHOUT ROWID""",
            # What was changed while the daemon ran, over what the configuration file says; the name
            # '' is the router itself.
            """CREATE TABLE channel_settings (
                connector TEXT PRIMARY KEY,
                paused INTEGER NOT NULL DEFAULT 0,
                rules BLOB NOT NULL DEFAULT '{}',
                cursor TEXT NOT NULL DEFAULT ''
            ) WITHOUT ROWID""",
            # Where an approval was put to somebody in a chat.
            """CREATE TABLE channel_asked (
                approval_id TEXT NOT NULL,
                reply_id TEXT NOT NULL,
                connector TEXT NOT NULL,
                conversation TEXT NOT NULL,
                thread TEXT NOT NULL,
                PRIMARY KEY (approval_id, connector, conversation, thread)
            ) WITHOUT ROWID""",
            # Who may answer an approval beside the one whose it is.
            """CREATE TABLE approval_routes (
                approval_id TEXT NOT NULL,
                principal TEXT NOT NULL,
                PRIMARY KEY (approval_id, principal)
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        13,
        "segments",
        (
            "ALTER TABLE sessions ADD COLUMN segment_id TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE sessions ADD COLUMN kept INTEGER NOT NULL DEFAULT 0",
            (
                "CREATE INDEX sessions_by_age ON sessions (updated_ms) WHERE segment_id = '' AND"
                " kept = 0"
            ),
            "CREATE INDEX sessions_by_parent ON sessions (parent_id) WHERE parent_id <> ''",
            """CREATE TABLE segments (
                segment_id TEXT PRIMARY KEY,
                bytes INTEGER NOT NULL,
                entries INTEGER NOT NULL,
                first_position INTEGER NOT NULL,
                last_position INTEGER NOT NULL,
                created_ms INTEGER NOT NULL
            ) WITHOUT ROWID""",
            # The tapes that lie in a segment. Until `removed`, some of their entries may still be
            # in `entries` as well.
            """CREATE TABLE segment_tapes (
                tape TEXT PRIMARY KEY,
                segment_id TEXT NOT NULL,
                head_seq INTEGER NOT NULL,
                head_hash BLOB NOT NULL,
                archived INTEGER NOT NULL,
                removed INTEGER NOT NULL
            ) WITHOUT ROWID""",
            "CREATE INDEX segment_tapes_by_segment ON segment_tapes (segment_id)",
            # In a backup, the segments themselves: it is one file, and whole.
            "CREATE TABLE segment_bodies (segment_id TEXT PRIMARY KEY, body BLOB NOT NULL)",
            # What was said in tapes that lie in segments, for searching it.
            """CREATE TABLE archived_said (
                position INTEGER PRIMARY KEY,
                seq INTEGER NOT NULL,
                kind TEXT NOT NULL,
                run_id TEXT NOT NULL,
                body BLOB NOT NULL
            )""",
            """CREATE VIEW spoken AS SELECT position, seq, kind, run_id, body FROM entries
                UNION ALL SELECT position, seq, kind, run_id, body FROM archived_said""",
            # The one way out of `entries`: a tape that was sealed as it is now, while what is in
            # the segment is being removed.
            "DROP TRIGGER entries_are_never_deleted",
            """CREATE TRIGGER entries_are_never_deleted BEFORE DELETE ON entries
                WHEN NOT EXISTS (SELECT 1 FROM segment_tapes s JOIN tapes t ON t.tape = s.tape
                    WHERE s.tape = OLD.tape AND s.removed = 0 AND OLD.seq <= s.head_seq
                        AND t.head_seq = s.head_seq AND t.head_hash = s.head_hash)
                BEGIN SELECT raise(ABORT, 'the journal is append-only'); END""",
            """CREATE TRIGGER segments_are_never_changed BEFORE UPDATE ON segments
                BEGIN SELECT raise(ABORT, 'a sealed segment is never changed'); END""",
            """CREATE TRIGGER segments_are_never_deleted BEFORE DELETE ON segments
                BEGIN SELECT raise(ABORT, 'a sealed segment is never forgotten'); END""",
        ),
    ),
    Migration(
        14,
        "whose answers a suggestion was made from",
        (
            """CREATE TABLE learned_answers (
                owner TEXT PRIMARY KEY,
                position INTEGER NOT NULL,
                looked_ms INTEGER NOT NULL
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        15,
        "certificates, where tokens are used from, where the daemon listens",
        (
            """CREATE TABLE certificates (
                fingerprint TEXT PRIMARY KEY,
                purpose TEXT NOT NULL,
                name TEXT NOT NULL,
                issued_ms INTEGER NOT NULL,
                expires_ms INTEGER NOT NULL,
                revoked_ms INTEGER NOT NULL DEFAULT 0
            ) WITHOUT ROWID""",
            """CREATE TABLE token_addresses (
                token_id TEXT NOT NULL,
                address TEXT NOT NULL,
                first_ms INTEGER NOT NULL,
                PRIMARY KEY (token_id, address)
            ) WITHOUT ROWID""",
            # One row: what the tape says last of where the daemon listens.
            (
                "CREATE TABLE listening (only INTEGER PRIMARY KEY CHECK (only = 1), told TEXT NOT"
                " NULL)"
            ),
        ),
    ),
    Migration(
        16,
        "workers on other machines, the codes they are enrolled with, who holds which call",
        (
            """CREATE TABLE workers (
                name TEXT PRIMARY KEY,
                state TEXT NOT NULL,
                fingerprint TEXT NOT NULL,
                instance TEXT NOT NULL DEFAULT '',
                version TEXT NOT NULL DEFAULT '',
                platform TEXT NOT NULL DEFAULT '',
                tier TEXT NOT NULL DEFAULT 'none',
                tools TEXT NOT NULL DEFAULT '[]',
                slots INTEGER NOT NULL DEFAULT 1,
                enrolled_ms INTEGER NOT NULL,
                seen_ms INTEGER NOT NULL DEFAULT 0,
                revoked_ms INTEGER NOT NULL DEFAULT 0
            ) WITHOUT ROWID""",
            "CREATE INDEX workers_by_fingerprint ON workers (fingerprint)",
            """CREATE TABLE worker_codes (
                digest BLOB PRIMARY KEY,
                name TEXT NOT NULL,
                expires_ms INTEGER NOT NULL
            ) WITHOUT ROWID""",
            """CREATE TABLE worker_leases (
                call_id TEXT PRIMARY KEY,
                worker TEXT NOT NULL,
                attempt INTEGER NOT NULL,
                session_id TEXT NOT NULL,
                run_id TEXT NOT NULL,
                tool TEXT NOT NULL,
                state TEXT NOT NULL,
                since_ms INTEGER NOT NULL,
                ended_ms INTEGER NOT NULL DEFAULT 0
            ) WITHOUT ROWID""",
            "CREATE INDEX worker_leases_by_worker ON worker_leases (worker, since_ms)",
            "CREATE INDEX worker_leases_held ON worker_leases (call_id) WHERE state = 'held'",
        ),
    ),
    Migration(
        17,
        "whose answers there are, without going through everybody's decisions",
        (
            (
                "CREATE INDEX entries_answers ON entries (principal, position) WHERE kind ="
                " 'approval.resolved'"
            ),
        ),
    ),
)
