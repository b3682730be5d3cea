-- Status of stacks, approvals, versions that request a new pass, and offline agents.

-- The status of a stack on a cluster, as its agent last reported it; `conditions` is JSON.
CREATE TABLE stack_status (
    agent_id    TEXT COLLATE "C" NOT NULL,
    stack_id    TEXT COLLATE "C" NOT NULL,
    revision_id TEXT COLLATE "C" NOT NULL REFERENCES revisions (id),
    sequence    BIGINT NOT NULL,
    conditions  TEXT NOT NULL,
    PRIMARY KEY (agent_id, stack_id),
    FOREIGN KEY (agent_id, stack_id) REFERENCES assignments (agent_id, stack_id) ON DELETE CASCADE
);

-- Plans that agents execute only after an approval; at most one per stack and agent is pending.
CREATE TABLE approvals (
    id          TEXT COLLATE "C" PRIMARY KEY,
    created_at  BIGINT NOT NULL,
    agent_id    TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    stack_id    TEXT COLLATE "C" NOT NULL REFERENCES stacks (id),
    revision_id TEXT COLLATE "C" NOT NULL REFERENCES revisions (id),
    digest      TEXT COLLATE "C" NOT NULL,
    state       TEXT COLLATE "C" NOT NULL,
    reasons     TEXT NOT NULL,
    plan        TEXT NOT NULL,
    decided_by  TEXT,
    decided_at  BIGINT,
    UNIQUE (agent_id, stack_id, revision_id, digest)
);
CREATE UNIQUE INDEX approvals_pending ON approvals (agent_id, stack_id) WHERE state = 'pending';
CREATE INDEX approvals_by_state ON approvals (state, id);

-- The version of the last change that needs a new pass but is not part of the target state.
ALTER TABLE versions ADD COLUMN nudged BIGINT NOT NULL DEFAULT 0;

-- An expression index: for the newest event by `position` alone PostgreSQL may scan the table backwards.
CREATE INDEX events_by_revision ON events (agent_id, revision_id, (position + 0));

-- 1 after subscribers were notified that its heartbeats have stopped; its next heartbeat resets it.
ALTER TABLE agents ADD COLUMN is_offline BIGINT NOT NULL DEFAULT 0;
CREATE INDEX agents_by_heartbeat ON agents (last_heartbeat)
  WHERE active = 1 AND is_offline = 0 AND deleted_at IS NULL AND last_heartbeat IS NOT NULL;
