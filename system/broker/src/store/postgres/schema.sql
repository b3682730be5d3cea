-- The first schema of the store in PostgreSQL. Texts compare by their bytes, as SQLite's do.

CREATE TABLE meta (name TEXT COLLATE "C" PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO meta (name, value) VALUES ('epoch', 1), ('tick', 0);
CREATE TABLE facts (name TEXT COLLATE "C" PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE secrets (name TEXT COLLATE "C" PRIMARY KEY, value BYTEA NOT NULL);

CREATE TABLE agents (
    id                 TEXT COLLATE "C" PRIMARY KEY,
    created_at         BIGINT NOT NULL,
    updated_at         BIGINT NOT NULL,
    deleted_at         BIGINT,
    name               TEXT COLLATE "C" NOT NULL,
    cluster_name       TEXT COLLATE "C" NOT NULL,
    active             BIGINT NOT NULL,
    last_heartbeat     BIGINT,
    k8s_reachable      BIGINT,
    k8s_api_latency_ms BIGINT,
    k8s_reported_at    BIGINT
);
CREATE UNIQUE INDEX agents_by_name ON agents (name, cluster_name) WHERE deleted_at IS NULL;

-- The version of each agent's target state; missing means 0.
CREATE TABLE versions (agent_id TEXT COLLATE "C" PRIMARY KEY REFERENCES agents (id), version BIGINT NOT NULL);
CREATE INDEX versions_by_version ON versions (version);
-- The number of the last change of other data that brokers cache.
CREATE TABLE changes (subject TEXT COLLATE "C" PRIMARY KEY, version BIGINT NOT NULL);

CREATE TABLE generators (
    id             TEXT COLLATE "C" PRIMARY KEY,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL,
    deleted_at     BIGINT,
    name           TEXT COLLATE "C" NOT NULL,
    description    TEXT,
    is_active      BIGINT NOT NULL,
    is_system      BIGINT NOT NULL,
    last_active_at BIGINT
);
CREATE UNIQUE INDEX generators_by_name ON generators (name) WHERE deleted_at IS NULL;

-- The holder is the agent, or the generator, or, with neither, the administrator.
CREATE TABLE keys (
    id           TEXT COLLATE "C" PRIMARY KEY,
    short        TEXT COLLATE "C" NOT NULL,
    digest       TEXT NOT NULL,
    agent_id     TEXT COLLATE "C" REFERENCES agents (id),
    generator_id TEXT COLLATE "C" REFERENCES generators (id),
    created_at   BIGINT NOT NULL,
    CHECK (agent_id IS NULL OR generator_id IS NULL)
);
CREATE INDEX keys_by_short ON keys (short);
CREATE INDEX keys_by_agent ON keys (agent_id);
CREATE INDEX keys_by_generator ON keys (generator_id);

CREATE TABLE registrations (
    id            TEXT COLLATE "C" PRIMARY KEY,
    agent_id      TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    generator_id  TEXT COLLATE "C" NOT NULL REFERENCES generators (id),
    registered_at BIGINT NOT NULL,
    UNIQUE (agent_id, generator_id)
);
CREATE INDEX registrations_by_generator ON registrations (generator_id);

CREATE TABLE stacks (
    id               TEXT COLLATE "C" PRIMARY KEY,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    deleted_at       BIGINT,
    name             TEXT COLLATE "C" NOT NULL,
    description      TEXT,
    generator_id     TEXT COLLATE "C" NOT NULL REFERENCES generators (id),
    newest           BIGINT,
    newest_is_marker BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX stacks_by_name ON stacks (generator_id, name) WHERE deleted_at IS NULL;

-- A revision with an agent is for that agent only: the removal of a stack that it should no longer have.
CREATE TABLE revisions (
    sequence           BIGINT PRIMARY KEY,
    id                 TEXT COLLATE "C" NOT NULL UNIQUE,
    stack_id           TEXT COLLATE "C" NOT NULL REFERENCES stacks (id),
    agent_id           TEXT COLLATE "C" REFERENCES agents (id),
    yaml_content       TEXT NOT NULL,
    yaml_checksum      TEXT NOT NULL,
    submitted_at       BIGINT NOT NULL,
    is_deletion_marker BIGINT NOT NULL
);
CREATE INDEX revisions_by_stack ON revisions (stack_id, sequence) WHERE agent_id IS NULL;

CREATE TABLE targets (
    id       TEXT COLLATE "C" NOT NULL UNIQUE,
    agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    stack_id TEXT COLLATE "C" NOT NULL REFERENCES stacks (id),
    PRIMARY KEY (agent_id, stack_id)
);
CREATE INDEX targets_by_stack ON targets (stack_id);

-- Assignments: the stacks that an agent should have (`wanted`) or has ever received, the removal that it must
-- confirm, and its last reported outcome.
CREATE TABLE assignments (
    agent_id    TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    stack_id    TEXT COLLATE "C" NOT NULL REFERENCES stacks (id),
    wanted      BIGINT NOT NULL DEFAULT 0,
    received    BIGINT NOT NULL DEFAULT 0,
    removal     BIGINT REFERENCES revisions (sequence),
    confirmed   BIGINT NOT NULL DEFAULT 0,
    reported    BIGINT,
    succeeded   BIGINT NOT NULL DEFAULT 0,
    reported_at BIGINT,
    PRIMARY KEY (agent_id, stack_id)
);
CREATE INDEX assignments_by_stack ON assignments (stack_id, wanted);

CREATE TABLE agent_labels (
    id       TEXT COLLATE "C" PRIMARY KEY,
    agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    label    TEXT COLLATE "C" NOT NULL,
    UNIQUE (agent_id, label)
);
CREATE INDEX agent_labels_by_label ON agent_labels (label);
CREATE TABLE stack_labels (
    id       TEXT COLLATE "C" PRIMARY KEY,
    stack_id TEXT COLLATE "C" NOT NULL REFERENCES stacks (id),
    label    TEXT COLLATE "C" NOT NULL,
    UNIQUE (stack_id, label)
);
CREATE INDEX stack_labels_by_label ON stack_labels (label);
CREATE TABLE agent_annotations (
    id       TEXT COLLATE "C" PRIMARY KEY,
    agent_id TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    key      TEXT COLLATE "C" NOT NULL,
    value    TEXT COLLATE "C" NOT NULL,
    UNIQUE (agent_id, key)
);
CREATE INDEX agent_annotations_by_pair ON agent_annotations (key, value);
CREATE TABLE stack_annotations (
    id       TEXT COLLATE "C" PRIMARY KEY,
    stack_id TEXT COLLATE "C" NOT NULL REFERENCES stacks (id),
    key      TEXT COLLATE "C" NOT NULL,
    value    TEXT COLLATE "C" NOT NULL,
    UNIQUE (stack_id, key)
);
CREATE INDEX stack_annotations_by_pair ON stack_annotations (key, value);

-- The record that a request with an Idempotency-Key created.
CREATE TABLE requests (
    actor           TEXT COLLATE "C" NOT NULL,
    idempotency_key TEXT COLLATE "C" NOT NULL,
    resource        TEXT NOT NULL,
    at              BIGINT NOT NULL,
    PRIMARY KEY (actor, idempotency_key)
);

CREATE TABLE events (
    position    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          TEXT COLLATE "C" NOT NULL UNIQUE,
    created_at  BIGINT NOT NULL,
    agent_id    TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    revision_id TEXT COLLATE "C" NOT NULL REFERENCES revisions (id),
    event_type  TEXT NOT NULL,
    status      TEXT NOT NULL,
    message     TEXT
);
CREATE INDEX events_by_agent ON events (agent_id, position);

CREATE TABLE health (
    id          TEXT COLLATE "C" PRIMARY KEY,
    agent_id    TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    revision_id TEXT COLLATE "C" NOT NULL REFERENCES revisions (id),
    status      TEXT NOT NULL,
    summary     TEXT,
    checked_at  BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    UNIQUE (agent_id, revision_id)
);
CREATE INDEX health_by_revision ON health (revision_id);

-- The last three columns are encrypted.
CREATE TABLE webhooks (
    id              TEXT COLLATE "C" PRIMARY KEY,
    name            TEXT COLLATE "C" NOT NULL UNIQUE,
    event_types     TEXT NOT NULL,
    filters         TEXT,
    target_labels   TEXT,
    enabled         BIGINT NOT NULL,
    max_retries     BIGINT NOT NULL,
    timeout_seconds BIGINT NOT NULL,
    created_by      TEXT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    url             BYTEA NOT NULL,
    auth_header     BYTEA,
    signing_secret  BYTEA NOT NULL
);

-- `due_at` is the time from which a sender may acquire the message.
CREATE TABLE deliveries (
    position        BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id              TEXT COLLATE "C" NOT NULL UNIQUE,
    webhook_id      TEXT COLLATE "C" NOT NULL REFERENCES webhooks (id),
    event_type      TEXT NOT NULL,
    event_id        TEXT NOT NULL,
    payload         TEXT NOT NULL,
    target_labels   TEXT,
    status          TEXT NOT NULL,
    acquired_by     TEXT,
    acquired_until  BIGINT,
    attempts        BIGINT NOT NULL,
    last_attempt_at BIGINT,
    due_at          BIGINT NOT NULL,
    last_error      TEXT,
    created_at      BIGINT NOT NULL,
    completed_at    BIGINT
);
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, position);
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE completed_at IS NULL;

CREATE TABLE audit (
    position      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            TEXT COLLATE "C" NOT NULL UNIQUE,
    at            BIGINT NOT NULL,
    actor_type    TEXT NOT NULL,
    actor_id      TEXT COLLATE "C",
    action        TEXT NOT NULL,
    resource_type TEXT NOT NULL,
    resource_id   TEXT COLLATE "C",
    details       TEXT,
    ip_address    TEXT,
    user_agent    TEXT
);
CREATE INDEX audit_by_resource ON audit (resource_id, position);
