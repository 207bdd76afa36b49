"""The SQLite schema. `entries` is the history and can only grow; every other table is what its
events imply.
"""

from palyra.store.migrations import Migration

MIGRATIONS = (
    Migration(
        1,
        "the spine",
        (
            """CREATE TABLE entries (
                position INTEGER PRIMARY KEY,
                tape TEXT NOT NULL,
                seq INTEGER NOT NULL,
                time_ms INTEGER NOT NULL,
                run_id TEXT NOT NULL,
                principal TEXT NOT NULL,
                kind TEXT NOT NULL,
                body BLOB NOT NULL,
                hash BLOB NOT NULL
            )""",
            "CREATE UNIQUE INDEX entries_by_tape ON entries (tape, seq)",
            "CREATE INDEX entries_by_run ON entries (run_id, seq) WHERE run_id <> ''",
            """CREATE INDEX entries_marks ON entries (tape, seq)
                WHERE kind = 'session.reset'""",
            """CREATE TRIGGER entries_are_never_changed BEFORE UPDATE ON entries
                BEGIN SELECT raise(ABORT, 'the journal is append-only'); END""",
            """CREATE TRIGGER entries_are_never_deleted BEFORE DELETE ON entries
                BEGIN SELECT raise(ABORT, 'the journal is append-only'); END""",
            """CREATE TABLE tapes (
                tape TEXT PRIMARY KEY,
                head_seq INTEGER NOT NULL,
                head_hash BLOB NOT NULL
            ) WITHOUT ROWID""",
            """CREATE TABLE sessions (
                session_id TEXT PRIMARY KEY,
                key TEXT UNIQUE,
                label TEXT NOT NULL DEFAULT '',
                title TEXT NOT NULL DEFAULT '',
                owner TEXT NOT NULL,
                device TEXT NOT NULL DEFAULT '',
                channel TEXT NOT NULL DEFAULT '',
                workspace TEXT NOT NULL DEFAULT '',
                created_ms INTEGER NOT NULL,
                updated_ms INTEGER NOT NULL,
                archived INTEGER NOT NULL DEFAULT 0,
                parent_id TEXT NOT NULL DEFAULT '',
                parent_seq INTEGER NOT NULL DEFAULT 0,
                fold_from INTEGER NOT NULL DEFAULT 1
            ) WITHOUT ROWID""",
            "CREATE INDEX sessions_by_owner ON sessions (owner, archived, updated_ms)",
            "CREATE INDEX sessions_by_label ON sessions (owner, label) WHERE label <> ''",
            """CREATE TABLE runs (
                run_id TEXT PRIMARY KEY,
                session_id TEXT NOT NULL,
                principal TEXT NOT NULL,
                origin TEXT NOT NULL,
                state TEXT NOT NULL,
                reason TEXT NOT NULL DEFAULT '',
                accepted_position INTEGER NOT NULL,
                created_ms INTEGER NOT NULL,
                started_ms INTEGER NOT NULL DEFAULT 0,
                ended_ms INTEGER NOT NULL DEFAULT 0,
                heartbeat_ms INTEGER NOT NULL DEFAULT 0
            ) WITHOUT ROWID""",
            "CREATE INDEX runs_by_session ON runs (session_id, accepted_position)",
            """CREATE INDEX runs_unfinished ON runs (session_id, state, accepted_position)
                WHERE state IN ('accepted', 'in_progress', 'waiting')""",
            """CREATE TABLE submissions (
                submission_id TEXT PRIMARY KEY,
                session_id TEXT NOT NULL,
                run_id TEXT NOT NULL,
                mode TEXT NOT NULL,
                digest BLOB NOT NULL,
                seq INTEGER NOT NULL
            ) WITHOUT ROWID""",
            (
                "CREATE INDEX runs_unfinished_by_principal ON runs (principal) WHERE state IN"
                " ('accepted', 'in_progress', 'waiting')"
            ),
            "CREATE INDEX submissions_by_run ON submissions (run_id)",
            """CREATE TABLE approvals (
                approval_id TEXT PRIMARY KEY,
                session_id TEXT NOT NULL,
                run_id TEXT NOT NULL,
                call_id TEXT NOT NULL,
                owner TEXT NOT NULL,
                tool TEXT NOT NULL,
                about TEXT NOT NULL,
                origin TEXT NOT NULL,
                requested_position INTEGER NOT NULL,
                requested_ms INTEGER NOT NULL,
                expires_ms INTEGER NOT NULL,
                decision TEXT NOT NULL DEFAULT '',
                resolved_position INTEGER NOT NULL DEFAULT 0,
                resolved_ms INTEGER NOT NULL DEFAULT 0
            ) WITHOUT ROWID""",
            "CREATE INDEX approvals_pending ON approvals (expires_ms) WHERE decision = ''",
            "CREATE INDEX approvals_by_run ON approvals (run_id)",
            "CREATE INDEX approvals_by_owner ON approvals (owner, requested_position)",
            """CREATE TABLE grants (
                approval_id TEXT PRIMARY KEY,
                principal TEXT NOT NULL,
                session_id TEXT,
                tool TEXT NOT NULL,
                subject_kind TEXT NOT NULL,
                subject_value TEXT NOT NULL,
                until_ms INTEGER,
                seen BLOB NOT NULL,
                created_ms INTEGER NOT NULL
            ) WITHOUT ROWID""",
            "CREATE INDEX grants_by_tool ON grants (principal, tool)",
            "CREATE INDEX grants_by_session ON grants (session_id)",
            """CREATE TABLE artifacts (
                session_id TEXT NOT NULL,
                artifact_id TEXT NOT NULL,
                media_type TEXT NOT NULL,
                body BLOB NOT NULL,
                created_ms INTEGER NOT NULL,
                PRIMARY KEY (session_id, artifact_id)
            )""",
            """CREATE TABLE effects (
                call_id TEXT PRIMARY KEY,
                session_id TEXT NOT NULL,
                run_id TEXT NOT NULL,
                tool TEXT NOT NULL,
                position INTEGER NOT NULL,
                checkpoint BLOB NOT NULL,
                undone_ms INTEGER NOT NULL DEFAULT 0
            )""",
            "CREATE INDEX effects_by_run ON effects (run_id, position)",
            "CREATE INDEX effects_by_session ON effects (session_id, position)",
            """CREATE TABLE tokens (
                token_id TEXT PRIMARY KEY,
                digest BLOB NOT NULL UNIQUE,
                name TEXT NOT NULL,
                principal TEXT NOT NULL,
                scope TEXT NOT NULL,
                created_ms INTEGER NOT NULL,
                expires_ms INTEGER NOT NULL DEFAULT 0,
                used_ms INTEGER NOT NULL DEFAULT 0,
                revoked_ms INTEGER NOT NULL DEFAULT 0
            ) WITHOUT ROWID""",
            """CREATE TABLE usage (
                position INTEGER PRIMARY KEY,
                time_ms INTEGER NOT NULL,
                session_id TEXT NOT NULL,
                run_id TEXT NOT NULL,
                principal TEXT NOT NULL,
                provider TEXT NOT NULL,
                model TEXT NOT NULL,
                input_tokens INTEGER NOT NULL,
                output_tokens INTEGER NOT NULL,
                cached_tokens INTEGER NOT NULL,
                cost_microusd INTEGER NOT NULL,
                duration_ms INTEGER NOT NULL,
                first_delta_ms INTEGER NOT NULL
            )""",
            "CREATE INDEX usage_by_run ON usage (run_id)",
            "CREATE INDEX usage_by_session ON usage (session_id, time_ms)",
            "CREATE INDEX usage_by_time ON usage (time_ms)",
            (
                "CREATE VIRTUAL TABLE search USING fts5 (text, session_id UNINDEXED, seq UNINDEXED,"
                " tokenize = 'porter unicode61')"
            ),
        ),
    ),
    Migration(
        2,
        "the vault",
        (
            # At most one: the key of all sealed values, itself sealed with the master key.
            """CREATE TABLE vault_key (
                id INTEGER PRIMARY KEY CHECK (id = 1),
                wrapped BLOB NOT NULL,
                created_ms INTEGER NOT NULL
            )""",
            """CREATE TABLE secrets (
                scope TEXT NOT NULL,
                name TEXT NOT NULL,
                size TEXT NOT NULL,
                hosts TEXT NOT NULL,
                tools TEXT NOT NULL,
                created_ms INTEGER NOT NULL,
                updated_ms INTEGER NOT NULL,
                used_ms INTEGER NOT NULL DEFAULT 0,
                sealed BLOB NOT NULL,
                PRIMARY KEY (scope, name)
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        3,
        "session rules and recorded decisions",
        (
            # Those in force; the tape says how they came about.
            """CREATE TABLE session_rules (
                session_id TEXT NOT NULL,
                rule_id TEXT NOT NULL,
                words TEXT NOT NULL,
                created_ms INTEGER NOT NULL,
                PRIMARY KEY (session_id, rule_id)
            ) WITHOUT ROWID""",
            """CREATE INDEX entries_rules ON entries (tape, seq)
                WHERE kind IN ('session.ruled', 'session.reset')""",
            """CREATE INDEX entries_decisions ON entries (position)
                WHERE kind IN ('tool.proposed', 'tool.decided', 'approval.requested', 'approval.resolved')""",  # noqa: E501
        ),
    ),
    Migration(
        4,
        "memory",
        (
            # `spot` is where an item stands in the index, partition << 32 | slot; null while it is
            # not searched.
            """CREATE TABLE memory_items (
                number INTEGER PRIMARY KEY,
                memory_id TEXT NOT NULL UNIQUE,
                owner TEXT NOT NULL,
                scope TEXT NOT NULL,
                scope_value TEXT NOT NULL,
                kind TEXT NOT NULL,
                text TEXT NOT NULL,
                same_key BLOB NOT NULL,
                salt BLOB NOT NULL,
                label TEXT NOT NULL,
                provenance TEXT NOT NULL,
                source TEXT NOT NULL,
                place INTEGER NOT NULL,
                confidence_bps INTEGER NOT NULL,
                valid_from_ms INTEGER NOT NULL,
                valid_until_ms INTEGER NOT NULL,
                expires_ms INTEGER NOT NULL,
                pinned INTEGER NOT NULL,
                state TEXT NOT NULL,
                why TEXT NOT NULL,
                origin TEXT NOT NULL,
                supersedes TEXT NOT NULL,
                superseded_by TEXT NOT NULL,
                created_ms INTEGER NOT NULL,
                updated_ms INTEGER NOT NULL,
                embedded_by TEXT NOT NULL DEFAULT '',
                spot INTEGER UNIQUE
            )""",
            "CREATE INDEX memory_by_owner ON memory_items (owner, state, number)",
            "CREATE INDEX memory_same ON memory_items (owner, same_key)",
            (
                "CREATE INDEX memory_by_source ON memory_items (owner, source, place) WHERE source"
                " <> ''"
            ),
            (
                "CREATE INDEX memory_not_embedded ON memory_items (number) WHERE spot IS NOT NULL"
                " AND embedded_by = ''"
            ),
            "CREATE INDEX memory_expiring ON memory_items (expires_ms) WHERE expires_ms > 0",
            "CREATE INDEX memory_after ON memory_items (supersedes) WHERE supersedes <> ''",
            "CREATE INDEX memory_before ON memory_items (superseded_by) WHERE superseded_by <> ''",
            "CREATE INDEX memory_pinned ON memory_items (owner) WHERE pinned = 1",
            # Everything that is searched together or not at all: one owner's items of one scope. A
            # number is never used again.
            """CREATE TABLE memory_partitions (
                partition INTEGER PRIMARY KEY AUTOINCREMENT,
                owner TEXT NOT NULL,
                scope TEXT NOT NULL,
                scope_value TEXT NOT NULL,
                items INTEGER NOT NULL DEFAULT 0,
                words INTEGER NOT NULL DEFAULT 0,
                next_slot INTEGER NOT NULL DEFAULT 0,
                UNIQUE (owner, scope, scope_value)
            )""",
            """CREATE TABLE memory_postings (
                partition INTEGER NOT NULL,
                term TEXT NOT NULL,
                first INTEGER NOT NULL,
                count INTEGER NOT NULL,
                postings BLOB NOT NULL
            )""",
            (
                "CREATE UNIQUE INDEX memory_postings_by_term ON memory_postings (partition, term,"
                " first)"
            ),
            "CREATE TABLE memory_vectors (spot INTEGER PRIMARY KEY, vector BLOB NOT NULL)",
            # The signs of the vectors' elements, so many slots to a row; `changed` grows with each
            # change in a partition.
            """CREATE TABLE memory_codes (
                partition INTEGER NOT NULL,
                block INTEGER NOT NULL,
                changed INTEGER NOT NULL,
                codes BLOB NOT NULL
            )""",
            "CREATE UNIQUE INDEX memory_codes_by_block ON memory_codes (partition, block)",
            "CREATE INDEX memory_codes_by_change ON memory_codes (partition, changed)",
        ),
    ),
    Migration(
        5,
        "what was said, searched like memory",
        (
            # A full-text index over everybody's words ranks by everybody's words.
            "DROP TABLE search",
            # Passages of what was said, with the label of what they were made from. The text itself
            # stays in `entries`.
            """CREATE TABLE turns (
                number INTEGER PRIMARY KEY,
                position INTEGER NOT NULL,
                owner TEXT NOT NULL,
                session_id TEXT NOT NULL,
                place INTEGER NOT NULL,
                first INTEGER NOT NULL,
                behind INTEGER NOT NULL,
                time_ms INTEGER NOT NULL,
                label TEXT NOT NULL,
                spot INTEGER NOT NULL UNIQUE,
                embedded_by TEXT NOT NULL DEFAULT ''
            )""",
            "CREATE INDEX turns_by_position ON turns (position)",
            "CREATE INDEX turns_by_place ON turns (session_id, place)",
            "CREATE INDEX turns_not_embedded ON turns (number) WHERE embedded_by = ''",
            # What a search wants to know of a spot, named as memory names it.
            """CREATE VIEW turns_searched AS SELECT spot, owner, session_id AS source, place, 10000 AS confidence_bps,
                time_ms AS valid_from_ms, time_ms AS created_ms, embedded_by, 0 AS expires_ms, 0 AS valid_until_ms FROM turns""",  # noqa: E501
            """CREATE INDEX entries_said ON entries (position)
                WHERE kind IN ('input.received', 'run.completed')""",
        ),
    ),
    Migration(
        6,
        "incidents and notices",
        (
            # `tried` is a list in JSON, of a few at most.
            """CREATE TABLE incidents (
                incident_id TEXT PRIMARY KEY,
                key TEXT NOT NULL,
                domain TEXT NOT NULL,
                severity TEXT NOT NULL,
                summary TEXT NOT NULL,
                fix TEXT NOT NULL,
                opened_ms INTEGER NOT NULL,
                closed_ms INTEGER NOT NULL DEFAULT 0,
                outcome TEXT NOT NULL DEFAULT '',
                tried TEXT NOT NULL DEFAULT '[]'
            ) WITHOUT ROWID""",
            "CREATE UNIQUE INDEX incidents_open ON incidents (key) WHERE closed_ms = 0",
            """CREATE TABLE notices (
                notice_id TEXT PRIMARY KEY,
                principal TEXT NOT NULL,
                about TEXT NOT NULL,
                key TEXT NOT NULL,
                text TEXT NOT NULL,
                link TEXT NOT NULL,
                position INTEGER NOT NULL UNIQUE,
                created_ms INTEGER NOT NULL,
                read_ms INTEGER NOT NULL DEFAULT 0
            ) WITHOUT ROWID""",
            "CREATE UNIQUE INDEX notices_by_key ON notices (principal, key)",
            "CREATE INDEX notices_by_principal ON notices (principal, position)",
            "CREATE INDEX notices_unread ON notices (principal) WHERE read_ms = 0",
        ),
    ),
    Migration(
        7,
        "background tasks",
        (
            """CREATE TABLE tasks (
                task_id TEXT PRIMARY KEY,
                kind TEXT NOT NULL,
                state TEXT NOT NULL,
                payload BLOB NOT NULL,
                key TEXT NOT NULL DEFAULT '',
                priority INTEGER NOT NULL,
                ready_ms INTEGER NOT NULL,
                expires_ms INTEGER NOT NULL DEFAULT 0,
                attempts INTEGER NOT NULL DEFAULT 0,
                max_attempts INTEGER NOT NULL DEFAULT 0,
                again INTEGER NOT NULL DEFAULT 0,
                lease_owner TEXT NOT NULL DEFAULT '',
                lease_until_ms INTEGER NOT NULL DEFAULT 0,
                heartbeat_ms INTEGER NOT NULL DEFAULT 0,
                created_ms INTEGER NOT NULL,
                started_ms INTEGER NOT NULL DEFAULT 0,
                ended_ms INTEGER NOT NULL DEFAULT 0,
                error TEXT NOT NULL DEFAULT '',
                principal TEXT NOT NULL,
                session_id TEXT NOT NULL DEFAULT '',
                schedule_id TEXT NOT NULL DEFAULT ''
            ) WITHOUT ROWID""",
            "CREATE UNIQUE INDEX tasks_by_key ON tasks (kind, key) WHERE key <> ''",
            (
                "CREATE INDEX tasks_ready ON tasks (kind, priority, ready_ms, task_id) WHERE state"
                " = 'queued'"
            ),
            "CREATE INDEX tasks_running ON tasks (kind, lease_until_ms) WHERE state = 'running'",
            (
                "CREATE INDEX tasks_expiring ON tasks (expires_ms) WHERE expires_ms > 0 AND state"
                " IN ('queued', 'paused')"
            ),
            "CREATE INDEX tasks_ended ON tasks (ended_ms) WHERE ended_ms > 0",
            # What a person decided about a kind.
            (
                "CREATE TABLE task_kinds (kind TEXT PRIMARY KEY, paused INTEGER NOT NULL) WITHOUT"
                " ROWID"
            ),
        ),
    ),
    Migration(
        8,
        "prices and budgets",
        (
            "ALTER TABLE usage ADD COLUMN task TEXT NOT NULL DEFAULT 'interactive'",
            # 1 where nobody knows what the call cost: its cost counts as 0 in a sum, which is then
            # too low.
            "ALTER TABLE usage ADD COLUMN unpriced INTEGER NOT NULL DEFAULT 0",
            "UPDATE usage SET unpriced = 1 WHERE provider NOT IN ('demo', 'scripted')",
            # Of a run that a schedule started.
            "ALTER TABLE runs ADD COLUMN schedule_id TEXT NOT NULL DEFAULT ''",
            # Limits that were set while the daemon ran; those of the configuration file are not
            # here.
            """CREATE TABLE budgets (
                name TEXT PRIMARY KEY,
                body BLOB NOT NULL,
                updated_ms INTEGER NOT NULL
            ) WITHOUT ROWID""",
        ),
    ),
    Migration(
        9,
        "subagents",
        (
            "ALTER TABLE sessions ADD COLUMN parent_run_id TEXT NOT NULL DEFAULT ''",
            """CREATE TABLE children (
                run_id TEXT PRIMARY KEY,
                session_id TEXT NOT NULL,
                parent_run_id TEXT NOT NULL,
                parent_session_id TEXT NOT NULL,
                call_id TEXT NOT NULL UNIQUE,
                principal TEXT NOT NULL,
                depth INTEGER NOT NULL,
                task TEXT NOT NULL,
                delivered INTEGER NOT NULL
            ) WITHOUT ROWID""",
            "CREATE INDEX children_by_parent ON children (parent_run_id)",
            "CREATE INDEX children_by_parent_session ON children (parent_session_id)",
            "CREATE INDEX children_undelivered ON children (run_id) WHERE delivered = 0",
        ),
    ),
    Migration(
        10,
        "learning",
        (
            # What was learned, whole in `body`; the other columns are what is asked for. `doing`:
            # files are being brought in line.
            """CREATE TABLE candidates (
                candidate_id TEXT PRIMARY KEY,
                owner TEXT NOT NULL,
                kind TEXT NOT NULL,
                state TEXT NOT NULL,
                key BLOB NOT NULL,
                about TEXT NOT NULL,
                doing TEXT NOT NULL DEFAULT '',
                body BLOB NOT NULL
            ) WITHOUT ROWID""",
            "CREATE UNIQUE INDEX candidates_same ON candidates (owner, kind, key)",
            "CREATE INDEX candidates_by_owner ON candidates (owner, state, candidate_id)",
            "CREATE INDEX candidates_about ON candidates (owner, about) WHERE about <> ''",
            "CREATE INDEX candidates_unfinished ON candidates (candidate_id) WHERE doing <> ''",
            # How far each session was read, and when.
            """CREATE TABLE reflections (
                session_id TEXT PRIMARY KEY,
                upto_seq INTEGER NOT NULL,
                reflected_ms INTEGER NOT NULL
            ) WITHOUT ROWID""",
            # What runs did in which order, to see what was done before.
            (
                "CREATE TABLE sequences (run_id TEXT PRIMARY KEY, owner TEXT NOT NULL, position"
                " INTEGER NOT NULL, body BLOB NOT NULL)"
            ),
            "CREATE INDEX sequences_by_owner ON sequences (owner, position)",
            # What was said before there was learning is not gone through.
            """CREATE TABLE learning_state (
                id INTEGER PRIMARY KEY CHECK (id = 1),
                fed_position INTEGER NOT NULL,
                answers_position INTEGER NOT NULL
            )""",
            """INSERT INTO learning_state (id, fed_position, answers_position)
                SELECT 1, coalesce(max(position), 0), coalesce(max(position), 0) FROM entries""",
        ),
    ),
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
)
