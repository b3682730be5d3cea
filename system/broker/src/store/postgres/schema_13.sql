-- Number of the newest revision within its stack, counted from 1, and the time of its submission.
ALTER TABLE stacks ADD COLUMN newest_number BIGINT NOT NULL DEFAULT 0;
ALTER TABLE stacks ADD COLUMN newest_at BIGINT;
UPDATE stacks SET
  newest_number = (SELECT count(*) FROM revisions WHERE stack_id = stacks.id AND agent_id IS NULL),
  newest_at = (SELECT submitted_at FROM revisions WHERE sequence = newest);
-- Revision and summary of the last report with conditions: phase, microseconds since 1970 and reason, and the message on the
-- next line. NULL as the summary: read the conditions in stack_status.
ALTER TABLE assignments ADD COLUMN status_sequence BIGINT;
ALTER TABLE assignments ADD COLUMN status_summary TEXT;
UPDATE assignments SET status_sequence = (
  SELECT sequence FROM stack_status
  WHERE stack_status.agent_id = assignments.agent_id AND stack_status.stack_id = assignments.stack_id);
CREATE INDEX assignments_to_remove ON assignments (stack_id) WHERE removal IS NOT NULL AND confirmed = 0;
