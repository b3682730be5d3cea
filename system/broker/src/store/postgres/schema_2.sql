-- What agents say about stacks, approvals, what else an agent has to look at, and which agents are offline.

-- How a stack is on a cluster, as its agent last said; `conditions` is JSON.
CREATE TABLE stack_status (
    agent_id    TEXT COLLATE "C" NOT NULL,
    stack_id    TEXT COLLATE "C" NOT NULL,
    revision_id TEXT COLLATE "C" NOT NULL REFERENCES revisions (id),
    sequence    BIGINT NOT NULL,
    conditions  TEXT NOT NULL,
    PRIMARY KEY (agent_id, stack_id),
    FOREIGN KEY (agent_id, stack_id) REFERENCES assignments (agent_id, stack_id) ON DELETE CASCADE
);

-- What agents hold back until somebody decides; of a stack on an agent at most one waits.
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

-- The version at which something changed that an agent has to look at and that is no part of its desired set.
ALTER TABLE versions ADD COLUMN nudged BIGINT NOT NULL DEFAULT 0;

-- By a sum: for the newest by `position` alone PostgreSQL may read the table backwards until it finds one.
CREATE INDEX events_by_revision ON events (agent_id, revision_id, (position + 0));

-- Whether subscribers were told that it is silent; its next heartbeat ends that.
ALTER TABLE agents ADD COLUMN is_offline BIGINT NOT NULL DEFAULT 0;
CREATE INDEX agents_by_heartbeat ON agents (last_heartbeat)
  WHERE active = 1 AND is_offline = 0 AND deleted_at IS NULL AND last_heartbeat IS NOT NULL;
