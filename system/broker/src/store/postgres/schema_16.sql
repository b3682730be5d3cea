-- 1 after an administrator deactivated the agent; one that was never active has 0.
ALTER TABLE agents ADD COLUMN is_deactivated BIGINT NOT NULL DEFAULT 0;
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
