-- The number of the counter at which the approval became pending: lists are in this order, because the ids of approvals that
-- are requested at the same time are not in the order in which they become visible. Those before are below every number.
ALTER TABLE approvals ADD COLUMN position BIGINT NOT NULL DEFAULT 0;
UPDATE approvals SET position = ranked.rank - (SELECT count(*) FROM approvals)
  FROM (SELECT id, row_number() OVER (ORDER BY id) AS rank FROM approvals) AS ranked WHERE ranked.id = approvals.id;
CREATE INDEX approvals_by_position ON approvals (position);
CREATE INDEX approvals_by_state_and_position ON approvals (state, position);
DROP INDEX approvals_by_state;
