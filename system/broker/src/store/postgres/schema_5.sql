-- Digest of the request with which an idempotency key was used. NULL: it was used before requests were compared.
ALTER TABLE requests ADD COLUMN request_digest TEXT;
CREATE INDEX requests_by_time ON requests (at);
