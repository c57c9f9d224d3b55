-- Removes the fence of a lock that is not in use and not in a gap.
--
-- KEYS  1 presence  2 lock key  3 fence  4 queue  5 readers  6 slots
-- Answer  1 nothing is left, 0 the lock is in use
-- Source  docs/wire.md, "Forget"

open(1)
if call('EXISTS', lock, queue, readers, slots) > 0 or in_gap() then
  return 0
end
call('DEL', fence)
return 1
