-- Texts for stacks that are not submitted. `bytes` is the size of the text and of all plans that there may be for it,
-- `plan_bytes` that of the plans that there are.
CREATE TABLE proposals (
    id           TEXT COLLATE "C" PRIMARY KEY,
    stack_id     TEXT COLLATE "C" NOT NULL REFERENCES stacks (id),
    created_at   BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL,
    yaml_content TEXT NOT NULL,
    bytes        BIGINT NOT NULL,
    plan_bytes   BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX proposals_by_stack ON proposals (stack_id, expires_at);
CREATE INDEX proposals_by_end ON proposals (expires_at);
-- Plans of agents. `position` is the number of the counter at which the proposal was created; the last three columns are NULL
-- until the agent has answered.
CREATE TABLE proposal_plans (
    agent_id    TEXT COLLATE "C" NOT NULL REFERENCES agents (id),
    position    BIGINT NOT NULL,
    proposal_id TEXT COLLATE "C" NOT NULL REFERENCES proposals (id) ON DELETE CASCADE,
    failed      BIGINT,
    changes     BIGINT,
    plan        TEXT,
    PRIMARY KEY (agent_id, position)
);
CREATE INDEX proposal_plans_by_proposal ON proposal_plans (proposal_id);
CREATE INDEX proposal_plans_by_position ON proposal_plans (position);
