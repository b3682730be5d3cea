-- Indexes by which old records, and what refers to them, are found.
CREATE INDEX audit_by_time ON audit (at);
CREATE INDEX events_by_time ON events (created_at);
CREATE INDEX revisions_by_time ON revisions (submitted_at);
CREATE INDEX events_of_revision ON events (revision_id);
CREATE INDEX approvals_of_revision ON approvals (revision_id);
CREATE INDEX stack_status_of_revision ON stack_status (revision_id);
CREATE INDEX assignments_by_removal ON assignments (removal) WHERE removal IS NOT NULL;
