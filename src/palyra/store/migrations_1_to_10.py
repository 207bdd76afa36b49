"""The first ten steps of the schema. What a journal may have gone through never changes."""

from palyra.store.migrations import Migration

MIGRATIONS_1_TO_10 = (
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
)
