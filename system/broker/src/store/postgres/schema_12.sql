-- The process of the agent that has last announced itself as the leader. Reports of other processes are rejected.
ALTER TABLE agents ADD COLUMN leader TEXT;
