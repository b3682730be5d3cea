//! The schema and its migrations.
//!
//! The SQL of a released migration never changes: the next change of the schema is a new entry.

use rusqlite::{Connection, TransactionBehavior};

use super::error::SqliteError;

/// Migrations in their order. The database's `user_version` is the number of migrations that it has.
const MIGRATIONS: &[&str] = &[
    FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH, TENTH, ELEVENTH, TWELFTH, THIRTEENTH,
    FOURTEENTH, FIFTEENTH,
];

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

-- AUTOINCREMENT: a sequence is never issued twice, not even after the last row was deleted.
-- A revision with an agent is for that agent only: the removal of a stack that is no longer targeted at it.
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

-- Every stack that an agent has ever received. `removal` is the removal that the agent must confirm, if there is one.
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

/// Labels and annotations, assignments in place of receipts, health, webhooks, the audit log, and the counter.
const SECOND: &str = "
INSERT INTO meta (name, value) SELECT 'tick', coalesce(max(sequence), 0) FROM revisions;
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;

-- The version of each agent's target state; missing means 0.
CREATE TABLE versions (agent_id TEXT PRIMARY KEY REFERENCES agents (id), version INTEGER NOT NULL) STRICT;
CREATE INDEX versions_by_version ON versions (version);
INSERT INTO versions (agent_id, version) SELECT id, (SELECT value FROM meta WHERE name = 'tick') FROM agents;
-- The number of the last change of other data that brokers cache.
CREATE TABLE changes (subject TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT;

ALTER TABLE stacks ADD COLUMN newest INTEGER REFERENCES revisions (sequence);
ALTER TABLE stacks ADD COLUMN newest_is_marker INTEGER NOT NULL DEFAULT 0;
UPDATE stacks SET newest = (
  SELECT max(sequence) FROM revisions WHERE stack_id = stacks.id AND agent_id IS NULL);
UPDATE stacks SET newest_is_marker = (SELECT is_deletion_marker FROM revisions WHERE sequence = newest)
  WHERE newest IS NOT NULL;

-- Assignments: the stacks that an agent should have (`wanted`) or has ever received, the removal that it must
-- confirm, and its last reported outcome.
CREATE TABLE assignments (
    agent_id    TEXT NOT NULL REFERENCES agents (id),
    stack_id    TEXT NOT NULL REFERENCES stacks (id),
    wanted      INTEGER NOT NULL DEFAULT 0,
    received    INTEGER NOT NULL DEFAULT 0,
    removal     INTEGER REFERENCES revisions (sequence),
    confirmed   INTEGER NOT NULL DEFAULT 0,
    reported    INTEGER,
    succeeded   INTEGER NOT NULL DEFAULT 0,
    reported_at INTEGER,
    PRIMARY KEY (agent_id, stack_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX assignments_by_stack ON assignments (stack_id, wanted);
INSERT INTO assignments (agent_id, stack_id, wanted) SELECT agent_id, stack_id, 1 FROM targets;
INSERT INTO assignments (agent_id, stack_id, received, removal, confirmed)
  SELECT agent_id, stack_id, 1, removal, confirmed FROM receipts WHERE true
  ON CONFLICT (agent_id, stack_id)
  DO UPDATE SET received = 1, removal = excluded.removal, confirmed = excluded.confirmed;
UPDATE assignments SET (reported, succeeded, reported_at) = (
    SELECT revisions.sequence, events.success, events.created_at
    FROM events JOIN revisions ON revisions.id = events.revision_id
    WHERE events.agent_id = assignments.agent_id AND revisions.stack_id = assignments.stack_id
    ORDER BY revisions.sequence DESC, events.position DESC LIMIT 1)
  WHERE EXISTS (
    SELECT 1 FROM events JOIN revisions ON revisions.id = events.revision_id
    WHERE events.agent_id = assignments.agent_id AND revisions.stack_id = assignments.stack_id);
DROP TABLE receipts;

CREATE TABLE new_keys (
    id           TEXT PRIMARY KEY,
    short        TEXT NOT NULL,
    digest       TEXT NOT NULL,
    agent_id     TEXT REFERENCES agents (id),
    generator_id TEXT REFERENCES generators (id),
    created_at   INTEGER NOT NULL,
    CHECK (agent_id IS NULL OR generator_id IS NULL)
) STRICT;
INSERT INTO new_keys (id, short, digest, agent_id, generator_id, created_at)
  SELECT lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a'
           || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))),
         short, digest, agent_id, generator_id, created_at FROM keys;
DROP TABLE keys;
ALTER TABLE new_keys RENAME TO keys;
CREATE INDEX keys_by_short ON keys (short);
CREATE INDEX keys_by_agent ON keys (agent_id);
CREATE INDEX keys_by_generator ON keys (generator_id);

CREATE TABLE agent_labels (
    id       TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL REFERENCES agents (id),
    label    TEXT NOT NULL,
    UNIQUE (agent_id, label)
) STRICT;
CREATE INDEX agent_labels_by_label ON agent_labels (label);
CREATE TABLE stack_labels (
    id       TEXT PRIMARY KEY,
    stack_id TEXT NOT NULL REFERENCES stacks (id),
    label    TEXT NOT NULL,
    UNIQUE (stack_id, label)
) STRICT;
CREATE INDEX stack_labels_by_label ON stack_labels (label);
CREATE TABLE agent_annotations (
    id       TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL REFERENCES agents (id),
    key      TEXT NOT NULL,
    value    TEXT NOT NULL,
    UNIQUE (agent_id, key)
) STRICT;
CREATE INDEX agent_annotations_by_pair ON agent_annotations (key, value);
CREATE TABLE stack_annotations (
    id       TEXT PRIMARY KEY,
    stack_id TEXT NOT NULL REFERENCES stacks (id),
    key      TEXT NOT NULL,
    value    TEXT NOT NULL,
    UNIQUE (stack_id, key)
) STRICT;
CREATE INDEX stack_annotations_by_pair ON stack_annotations (key, value);

-- The record that a request with an Idempotency-Key created.
CREATE TABLE requests (
    actor           TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    resource        TEXT NOT NULL,
    at              INTEGER NOT NULL,
    PRIMARY KEY (actor, idempotency_key)
) STRICT, WITHOUT ROWID;
INSERT INTO requests (actor, idempotency_key, resource, at)
  SELECT agent_id, idempotency_key, 'agent_event ' || id, created_at FROM events WHERE idempotency_key IS NOT NULL;

CREATE TABLE new_events (
    position    INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    created_at  INTEGER NOT NULL,
    agent_id    TEXT NOT NULL REFERENCES agents (id),
    revision_id TEXT NOT NULL REFERENCES revisions (id),
    event_type  TEXT NOT NULL,
    status      TEXT NOT NULL,
    message     TEXT
) STRICT;
INSERT INTO new_events (position, id, created_at, agent_id, revision_id, event_type, status, message)
  SELECT position, id, created_at, agent_id, revision_id, event_type, iif(success, 'SUCCESS', 'FAILURE'), message
  FROM events;
DROP TABLE events;
ALTER TABLE new_events RENAME TO events;
CREATE INDEX events_by_agent ON events (agent_id, position);

CREATE TABLE health (
    id          TEXT PRIMARY KEY,
    agent_id    TEXT NOT NULL REFERENCES agents (id),
    revision_id TEXT NOT NULL REFERENCES revisions (id),
    status      TEXT NOT NULL,
    summary     TEXT,
    checked_at  INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    UNIQUE (agent_id, revision_id)
) STRICT;
CREATE INDEX health_by_revision ON health (revision_id);

-- The last three columns are encrypted.
CREATE TABLE webhooks (
    id              TEXT PRIMARY KEY,
    name            TEXT NOT NULL UNIQUE,
    event_types     TEXT NOT NULL,
    filters         TEXT,
    target_labels   TEXT,
    enabled         INTEGER NOT NULL,
    max_retries     INTEGER NOT NULL,
    timeout_seconds INTEGER NOT NULL,
    created_by      TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    url             BLOB NOT NULL,
    auth_header     BLOB,
    signing_secret  BLOB NOT NULL
) STRICT;

-- `due_at` is the time from which a sender may acquire the message.
CREATE TABLE deliveries (
    position        INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    webhook_id      TEXT NOT NULL REFERENCES webhooks (id),
    event_type      TEXT NOT NULL,
    event_id        TEXT NOT NULL,
    payload         TEXT NOT NULL,
    target_labels   TEXT,
    status          TEXT NOT NULL,
    acquired_by     TEXT,
    acquired_until  INTEGER,
    attempts        INTEGER NOT NULL,
    last_attempt_at INTEGER,
    due_at          INTEGER NOT NULL,
    last_error      TEXT,
    created_at      INTEGER NOT NULL,
    completed_at    INTEGER
) STRICT;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, position);
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE completed_at IS NULL;

CREATE TABLE audit (
    position      INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    at            INTEGER NOT NULL,
    actor_type    TEXT NOT NULL,
    actor_id      TEXT,
    action        TEXT NOT NULL,
    resource_type TEXT NOT NULL,
    resource_id   TEXT,
    details       TEXT,
    ip_address    TEXT,
    user_agent    TEXT
) STRICT;
CREATE INDEX audit_by_resource ON audit (resource_id, position);
";

/// Status of stacks, approvals, versions that request a new pass, and offline agents.
const THIRD: &str = "
-- The status of a stack on a cluster, as its agent last reported it; `conditions` is JSON.
CREATE TABLE stack_status (
    agent_id    TEXT NOT NULL,
    stack_id    TEXT NOT NULL,
    revision_id TEXT NOT NULL REFERENCES revisions (id),
    sequence    INTEGER NOT NULL,
    conditions  TEXT NOT NULL,
    PRIMARY KEY (agent_id, stack_id),
    FOREIGN KEY (agent_id, stack_id) REFERENCES assignments (agent_id, stack_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- Plans that agents execute only after an approval; at most one per stack and agent is pending.
CREATE TABLE approvals (
    id          TEXT PRIMARY KEY,
    created_at  INTEGER NOT NULL,
    agent_id    TEXT NOT NULL REFERENCES agents (id),
    stack_id    TEXT NOT NULL REFERENCES stacks (id),
    revision_id TEXT NOT NULL REFERENCES revisions (id),
    digest      TEXT NOT NULL,
    state       TEXT NOT NULL,
    reasons     TEXT NOT NULL,
    plan        TEXT NOT NULL,
    decided_by  TEXT,
    decided_at  INTEGER,
    UNIQUE (agent_id, stack_id, revision_id, digest)
) STRICT;
CREATE UNIQUE INDEX approvals_pending ON approvals (agent_id, stack_id) WHERE state = 'pending';
CREATE INDEX approvals_by_state ON approvals (state, id);

-- The version of the last change that needs a new pass but is not part of the target state.
ALTER TABLE versions ADD COLUMN nudged INTEGER NOT NULL DEFAULT 0;

-- An expression index: for the newest event by `position` alone PostgreSQL may scan the table backwards.
CREATE INDEX events_by_revision ON events (agent_id, revision_id, (position + 0));

-- 1 after subscribers were notified that its heartbeats have stopped; its next heartbeat resets it.
ALTER TABLE agents ADD COLUMN is_offline INTEGER NOT NULL DEFAULT 0;
CREATE INDEX agents_by_heartbeat ON agents (last_heartbeat)
  WHERE active = 1 AND is_offline = 0 AND deleted_at IS NULL AND last_heartbeat IS NOT NULL;
";

/// Digest of the request with which an idempotency key was used.
const FOURTH: &str = "
-- NULL: the key was used before requests were compared.
ALTER TABLE requests ADD COLUMN request_digest TEXT;
CREATE INDEX requests_by_time ON requests (at);
";

/// Indexes by which old records, and what refers to them, are found.
const FIFTH: &str = "
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX events_by_time ON events (created_at);
CREATE INDEX revisions_by_time ON revisions (submitted_at);
CREATE INDEX events_of_revision ON events (revision_id);
CREATE INDEX approvals_of_revision ON approvals (revision_id);
CREATE INDEX stack_status_of_revision ON stack_status (revision_id);
CREATE INDEX assignments_by_removal ON assignments (removal) WHERE removal IS NOT NULL;
";

/// The queue of each webhook subscription.
const SIXTH: &str = "
CREATE INDEX deliveries_queue ON deliveries (webhook_id, due_at, position) WHERE completed_at IS NULL;
-- Messages that wait have the labels of their subscription.
UPDATE deliveries SET target_labels = (SELECT webhooks.target_labels FROM webhooks WHERE webhooks.id = webhook_id)
  WHERE completed_at IS NULL;
";

/// Two webhook subscriptions may have one name. SQLite cannot drop the constraint, so both tables are copied.
const SEVENTH: &str = "
CREATE TABLE webhooks_new (
    id              TEXT PRIMARY KEY,
    name            TEXT NOT NULL,
    event_types     TEXT NOT NULL,
    filters         TEXT,
    target_labels   TEXT,
    enabled         INTEGER NOT NULL,
    max_retries     INTEGER NOT NULL,
    timeout_seconds INTEGER NOT NULL,
    created_by      TEXT,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    url             BLOB NOT NULL,
    auth_header     BLOB,
    signing_secret  BLOB NOT NULL
) STRICT;
CREATE TABLE deliveries_new (
    position        INTEGER PRIMARY KEY AUTOINCREMENT,
    id              TEXT NOT NULL UNIQUE,
    webhook_id      TEXT NOT NULL REFERENCES webhooks_new (id),
    event_type      TEXT NOT NULL,
    event_id        TEXT NOT NULL,
    payload         TEXT NOT NULL,
    target_labels   TEXT,
    status          TEXT NOT NULL,
    acquired_by     TEXT,
    acquired_until  INTEGER,
    attempts        INTEGER NOT NULL,
    last_attempt_at INTEGER,
    due_at          INTEGER NOT NULL,
    last_error      TEXT,
    created_at      INTEGER NOT NULL,
    completed_at    INTEGER
) STRICT;
INSERT INTO webhooks_new SELECT * FROM webhooks;
INSERT INTO deliveries_new SELECT * FROM deliveries;
DROP TABLE deliveries;
DROP TABLE webhooks;
ALTER TABLE webhooks_new RENAME TO webhooks;
ALTER TABLE deliveries_new RENAME TO deliveries;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, position);
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE completed_at IS NULL;
CREATE INDEX deliveries_queue ON deliveries (webhook_id, due_at, position) WHERE completed_at IS NULL;
CREATE INDEX webhooks_by_name ON webhooks (name, id);
";

/// Several administrators, and keys that expire.
const EIGHTH: &str = "
CREATE TABLE admins (
    id           TEXT PRIMARY KEY,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    deleted_at   INTEGER,
    name         TEXT NOT NULL,
    is_read_only INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX admins_by_name ON admins (name) WHERE deleted_at IS NULL;
-- The holder is one of the three. A key with `replaced_at` is valid until `expires_at`, besides the one that replaced it.
ALTER TABLE keys ADD COLUMN admin_id TEXT REFERENCES admins (id);
ALTER TABLE keys ADD COLUMN expires_at INTEGER;
ALTER TABLE keys ADD COLUMN replaced_at INTEGER;
CREATE INDEX keys_by_admin ON keys (admin_id);
-- The one administrator before had no record; its id is the id of its key.
INSERT INTO admins (id, created_at, updated_at, name, is_read_only)
  SELECT min(id), min(created_at), min(created_at), 'admin', 0 FROM keys
  WHERE agent_id IS NULL AND generator_id IS NULL HAVING count(*) > 0;
UPDATE keys SET admin_id = (SELECT id FROM admins) WHERE agent_id IS NULL AND generator_id IS NULL;
-- Idempotency keys of that administrator stay its own.
UPDATE requests SET actor = (SELECT id FROM admins) WHERE actor = 'admin' AND EXISTS (SELECT 1 FROM admins);
";

/// The order of approvals.
const NINTH: &str = "
-- The number of the counter at which the approval became pending: lists are in this order, because the ids of approvals that
-- are requested at the same time are not in the order in which they become visible. Those before are below every number.
ALTER TABLE approvals ADD COLUMN position INTEGER NOT NULL DEFAULT 0;
UPDATE approvals SET position = ranked.rank - (SELECT count(*) FROM approvals)
  FROM (SELECT id, row_number() OVER (ORDER BY id) AS rank FROM approvals) AS ranked WHERE ranked.id = approvals.id;
CREATE INDEX approvals_by_position ON approvals (position);
CREATE INDEX approvals_by_state_and_position ON approvals (state, position);
DROP INDEX approvals_by_state;
";

/// Requests that submitted revisions.
const TENTH: &str = "
ALTER TABLE revisions ADD COLUMN request_id TEXT;
ALTER TABLE revisions ADD COLUMN traceparent TEXT;
";

/// Leaders of agents.
const ELEVENTH: &str = "
-- The process of the agent that has last announced itself as the leader. Reports of other processes are rejected.
ALTER TABLE agents ADD COLUMN leader TEXT;
";

/// Overview of stacks on clusters, and the history of each stack.
const TWELFTH: &str = "
-- Number of the newest revision within its stack, counted from 1, and the time of its submission.
ALTER TABLE stacks ADD COLUMN newest_number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE stacks ADD COLUMN newest_at INTEGER;
UPDATE stacks SET
  newest_number = (SELECT count(*) FROM revisions WHERE stack_id = stacks.id AND agent_id IS NULL),
  newest_at = (SELECT submitted_at FROM revisions WHERE sequence = newest);
-- Revision and summary of the last report with conditions: phase, microseconds since 1970 and reason, and the message on the
-- next line. NULL as the summary: read the conditions in stack_status.
ALTER TABLE assignments ADD COLUMN status_sequence INTEGER;
ALTER TABLE assignments ADD COLUMN status_summary TEXT;
UPDATE assignments SET status_sequence = (
  SELECT sequence FROM stack_status
  WHERE stack_status.agent_id = assignments.agent_id AND stack_status.stack_id = assignments.stack_id);
CREATE INDEX assignments_to_remove ON assignments (stack_id) WHERE removal IS NOT NULL AND confirmed = 0;
";

/// Number of each revision.
const THIRTEENTH: &str = "
-- Number of a revision within its stack, counted from 1; NULL for a removal for one agent. It stays when other revisions are
-- deleted. The newest has the number in `stacks`, so those before are counted back from it.
ALTER TABLE revisions ADD COLUMN number INTEGER;
UPDATE revisions SET number = counted.number FROM (
  SELECT revisions.sequence, newest_number + 1
      - row_number() OVER (PARTITION BY stack_id ORDER BY revisions.sequence DESC) AS number
    FROM revisions JOIN stacks ON stacks.id = revisions.stack_id WHERE revisions.agent_id IS NULL) AS counted
  WHERE counted.sequence = revisions.sequence;
";

/// Proposals.
const FOURTEENTH: &str = "
-- Texts for stacks that are not submitted. `bytes` is the size of the text and of all plans that there may be for it,
-- `plan_bytes` that of the plans that there are.
CREATE TABLE proposals (
    id           TEXT PRIMARY KEY,
    stack_id     TEXT NOT NULL REFERENCES stacks (id),
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    yaml_content TEXT NOT NULL,
    bytes        INTEGER NOT NULL,
    plan_bytes   INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX proposals_by_stack ON proposals (stack_id, expires_at);
CREATE INDEX proposals_by_end ON proposals (expires_at);
-- Plans of agents. `position` is the number of the counter at which the proposal was created; the last three columns are NULL
-- until the agent has answered.
CREATE TABLE proposal_plans (
    agent_id    TEXT NOT NULL REFERENCES agents (id),
    position    INTEGER NOT NULL,
    proposal_id TEXT NOT NULL REFERENCES proposals (id) ON DELETE CASCADE,
    failed      INTEGER,
    changes     INTEGER,
    plan        TEXT,
    PRIMARY KEY (agent_id, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX proposal_plans_by_proposal ON proposal_plans (proposal_id);
CREATE INDEX proposal_plans_by_position ON proposal_plans (position);
";

/// Deactivated agents, and indexes of deleted records.
const FIFTEENTH: &str = "
-- 1 after an administrator deactivated the agent; one that was never active has 0.
ALTER TABLE agents ADD COLUMN is_deactivated INTEGER NOT NULL DEFAULT 0;
UPDATE agents SET is_deactivated = 1
  WHERE active = 0 AND EXISTS (SELECT 1 FROM assignments WHERE agent_id = agents.id AND reported IS NOT NULL);
-- Indexes by which deleted records, and what refers to them, are found.
CREATE INDEX assignments_removed ON assignments (agent_id, stack_id) WHERE wanted = 0 AND confirmed = 1;
CREATE INDEX agents_deleted ON agents (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX generators_deleted ON generators (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX stacks_deleted ON stacks (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE INDEX stacks_of_generator ON stacks (generator_id);
CREATE INDEX revisions_of_stack ON revisions (stack_id);
CREATE INDEX revisions_for_agent ON revisions (agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX approvals_of_stack ON approvals (stack_id);
-- The beginning of the value: the row of an index has a limit, below the largest value.
DROP INDEX agent_annotations_by_pair;
DROP INDEX stack_annotations_by_pair;
CREATE INDEX agent_annotations_by_pair ON agent_annotations (key, substr(value, 1, 200));
CREATE INDEX stack_annotations_by_pair ON stack_annotations (key, substr(value, 1, 200));
";

/// Migrates the database to the newest schema, each migration in its own transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), SqliteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (done, tables) = read_version(&transaction)?;
    transaction.commit()?;
    if done == 0 && tables > 0 {
        return Err(SqliteError::Foreign);
    }
    for (version, migration) in (1_i64..).zip(MIGRATIONS).skip(done) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Checks that this is a database of a broker that is not newer than this one.
pub(super) fn check_version(connection: &Connection) -> Result<(), SqliteError> {
    let (done, _) = read_version(connection)?;
    if done == 0 { Err(SqliteError::Foreign) } else { Ok(()) }
}

/// Returns the number of migrations that a database has, and of its tables and indexes.
fn read_version(connection: &Connection) -> Result<(usize, i64), SqliteError> {
    let known = MIGRATIONS.len();
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let done = usize::try_from(found).map_err(|_| SqliteError::Foreign)?;
    if done > known { Err(SqliteError::Newer { found, known }) } else { Ok((done, tables)) }
}
