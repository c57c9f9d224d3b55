-- Reads a record, and changes nothing.
--
-- KEYS  1 record
-- Answer  {stamp, bytes, ms left} what is written, {} nothing is
-- Source  Leasehold's records (wire v1)

return shown(KEYS[1])
