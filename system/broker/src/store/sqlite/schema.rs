//! The tables, and how an older database becomes a newer one.
//!
//! A migration is never edited once it was released: the next change is the next entry.

use rusqlite::{Connection, TransactionBehavior};

use super::OpenError;

/// In order; the database's `user_version` is how many of them it has.
const MIGRATIONS: &[&str] = &[FIRST];

const FIRST: &str = "
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;
INSERT INTO meta (name, value) VALUES ('epoch', 1);

CREATE TABLE agents (
    id                 TEXT PRIMARY KEY,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    deleted_at         INTEGER,
    name               TEXT NOT NULL,
    cluster_name       TEXT NOT NULL,
    active             INTEGER NOT NULL,
    last_heartbeat     INTEGER,
    k8s_reachable      INTEGER,
    k8s_api_latency_ms INTEGER,
    k8s_reported_at    INTEGER
) STRICT;
CREATE UNIQUE INDEX agents_by_name ON agents (name, cluster_name) WHERE deleted_at IS NULL;

CREATE TABLE generators (
    id             TEXT PRIMARY KEY,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL,
    deleted_at     INTEGER,
    name           TEXT NOT NULL,
    description    TEXT,
    is_active      INTEGER NOT NULL,
    is_system      INTEGER NOT NULL,
    last_active_at INTEGER
) STRICT;
CREATE UNIQUE INDEX generators_by_name ON generators (name) WHERE deleted_at IS NULL;

-- The holder is the agent, or the generator, or, with neither, the administrator.
CREATE TABLE keys (
    position     INTEGER PRIMARY KEY,
    short        TEXT NOT NULL,
    digest       TEXT NOT NULL,
    agent_id     TEXT REFERENCES agents (id),
    generator_id TEXT REFERENCES generators (id),
    created_at   INTEGER NOT NULL,
    CHECK (agent_id IS NULL OR generator_id IS NULL)
) STRICT;
CREATE INDEX keys_by_short ON keys (short);
CREATE INDEX keys_by_agent ON keys (agent_id);

CREATE TABLE registrations (
    id            TEXT PRIMARY KEY,
    agent_id      TEXT NOT NULL REFERENCES agents (id),
    generator_id  TEXT NOT NULL REFERENCES generators (id),
    registered_at INTEGER NOT NULL,
    UNIQUE (agent_id, generator_id)
) STRICT;
CREATE INDEX registrations_by_generator ON registrations (generator_id);

CREATE TABLE stacks (
    id           TEXT PRIMARY KEY,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    deleted_at   INTEGER,
    name         TEXT NOT NULL,
    description  TEXT,
    generator_id TEXT NOT NULL REFERENCES generators (id)
) STRICT;
CREATE UNIQUE INDEX stacks_by_name ON stacks (generator_id, name) WHERE deleted_at IS NULL;

-- AUTOINCREMENT: a sequence is never given out twice, not even after the last row is gone.
-- A revision with an agent is for that agent only: the instruction to remove a stack that is no longer targeted.
CREATE TABLE revisions (
    sequence           INTEGER PRIMARY KEY AUTOINCREMENT,
    id                 TEXT NOT NULL UNIQUE,
    stack_id           TEXT NOT NULL REFERENCES stacks (id),
    agent_id           TEXT REFERENCES agents (id),
    yaml_content       TEXT NOT NULL,
    yaml_checksum      TEXT NOT NULL,
    submitted_at       INTEGER NOT NULL,
    is_deletion_marker INTEGER NOT NULL
) STRICT;
CREATE INDEX revisions_by_stack ON revisions (stack_id, sequence) WHERE agent_id IS NULL;

CREATE TABLE targets (
    id       TEXT NOT NULL UNIQUE,
    agent_id TEXT NOT NULL REFERENCES agents (id),
    stack_id TEXT NOT NULL REFERENCES stacks (id),
    PRIMARY KEY (agent_id, stack_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX targets_by_stack ON targets (stack_id);

-- What an agent has received, ever. `removal` is the instruction that it must confirm, while there is one.
CREATE TABLE receipts (
    agent_id  TEXT NOT NULL REFERENCES agents (id),
    stack_id  TEXT NOT NULL REFERENCES stacks (id),
    removal   INTEGER REFERENCES revisions (sequence),
    confirmed INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (agent_id, stack_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_by_stack ON receipts (stack_id);
CREATE INDEX receipts_outstanding ON receipts (agent_id, removal) WHERE removal IS NOT NULL AND confirmed = 0;

CREATE TABLE events (
    position        INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    created_at      INTEGER NOT NULL,
    agent_id        TEXT NOT NULL REFERENCES agents (id),
    revision_id     TEXT NOT NULL REFERENCES revisions (id),
    event_type      TEXT NOT NULL,
    success         INTEGER NOT NULL,
    message         TEXT,
    idempotency_key TEXT
) STRICT;
CREATE INDEX events_by_agent ON events (agent_id, position);
CREATE UNIQUE INDEX events_by_key ON events (agent_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
";

/// Brings the database to the newest schema, each step in its own transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    let known = MIGRATIONS.len();
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    transaction.commit()?;
    let done = usize::try_from(found).map_err(|_| OpenError::Foreign)?;
    if done > known {
        return Err(OpenError::Newer { found, known });
    }
    if done == 0 && tables > 0 {
        return Err(OpenError::Foreign);
    }
    for (version, migration) in (1_i64..).zip(MIGRATIONS).skip(done) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}
