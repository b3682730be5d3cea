-- The request that submitted a revision: its id and its position in a trace.
ALTER TABLE revisions ADD COLUMN request_id TEXT;
ALTER TABLE revisions ADD COLUMN traceparent TEXT;
