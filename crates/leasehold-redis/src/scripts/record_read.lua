-- Reads a record.
--
-- KEYS  1 record
-- Answer  {version, value, ms left} or {} if there is no value
-- Source  docs/wire.md, "Records"

return shown(KEYS[1])
