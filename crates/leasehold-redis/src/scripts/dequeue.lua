-- Ends a wait. It frees no lease, so a client may send it for a message that anyone may have published.
--
-- KEYS  1 presence  2 lock key  3 fence  4 queue  5 readers  6 slots
-- ARGV  1 entry
-- Answer  1 if the entry was in the queue or 0
-- Source  docs/wire.md, "Release"

open(1)
local was_queued = call('ZREM', queue, ARGV[1])
local admitted = admits()
if admitted == nil or admitted and was_queued > 0 then
  hand_over()
  keep_for_head()
end
return was_queued
