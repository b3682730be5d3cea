-- The texts of revisions are compressed in a way that costs little, where the server has it: the other one takes a tenth of the
-- time of a submission. What is there already stays as it is.
DO $$
BEGIN
    EXECUTE 'ALTER TABLE revisions ALTER COLUMN yaml_content SET COMPRESSION lz4';
EXCEPTION
    -- A server before version 14, or one that was built without it.
    WHEN syntax_error OR feature_not_supported OR invalid_parameter_value THEN NULL;
END
$$;
