-- Several administrators, and keys that expire.
CREATE TABLE admins (
    id           TEXT COLLATE "C" PRIMARY KEY,
    created_at   BIGINT NOT NULL,
    updated_at   BIGINT NOT NULL,
    deleted_at   BIGINT,
    name         TEXT COLLATE "C" NOT NULL,
    is_read_only BIGINT NOT NULL
);
CREATE UNIQUE INDEX admins_by_name ON admins (name) WHERE deleted_at IS NULL;
-- The holder is one of the three. A key with `replaced_at` is valid until `expires_at`, besides the one that replaced it.
ALTER TABLE keys ADD COLUMN admin_id TEXT COLLATE "C" REFERENCES admins (id);
ALTER TABLE keys ADD COLUMN expires_at BIGINT;
ALTER TABLE keys ADD COLUMN replaced_at BIGINT;
CREATE INDEX keys_by_admin ON keys (admin_id);
-- The one administrator before had no record; its id is the id of its key.
INSERT INTO admins (id, created_at, updated_at, name, is_read_only)
  SELECT min(id), min(created_at), min(created_at), 'admin', 0 FROM keys
  WHERE agent_id IS NULL AND generator_id IS NULL HAVING count(*) > 0;
UPDATE keys SET admin_id = (SELECT id FROM admins) WHERE agent_id IS NULL AND generator_id IS NULL;
-- Idempotency keys of that administrator stay its own.
UPDATE requests SET actor = (SELECT id FROM admins) WHERE actor = 'admin' AND EXISTS (SELECT 1 FROM admins);
