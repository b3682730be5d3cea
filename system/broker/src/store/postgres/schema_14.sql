-- Number of a revision within its stack, counted from 1; NULL for a removal for one agent. It stays when other revisions are
-- deleted. The newest has the number in `stacks`, so those before are counted back from it.
ALTER TABLE revisions ADD COLUMN number BIGINT;
UPDATE revisions SET number = counted.number FROM (
  SELECT revisions.sequence, newest_number + 1
      - row_number() OVER (PARTITION BY stack_id ORDER BY revisions.sequence DESC) AS number
    FROM revisions JOIN stacks ON stacks.id = revisions.stack_id WHERE revisions.agent_id IS NULL) AS counted
  WHERE counted.sequence = revisions.sequence;
