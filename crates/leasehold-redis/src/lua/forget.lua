-- Removes the counter of a lock that nobody holds, waits for, or has reserved.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered  6 slots
-- Answer  1 nothing is left, 0 the lock is in use
-- Source  Leasehold's wire v1: a counter outlives the last use of its lock

local lock, fence = KEYS[1], KEYS[2]

if redis.call('EXISTS', lock, unpack(KEYS, 3)) > 0 then
  return 0
end
redis.call('DEL', fence)
return 1
