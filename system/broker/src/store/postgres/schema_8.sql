-- Two webhook subscriptions may have one name.
ALTER TABLE webhooks DROP CONSTRAINT webhooks_name_key;
CREATE INDEX webhooks_by_name ON webhooks (name, id);
