-- Takes the lock together with other readers. Does not join them while somebody waits.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue
-- ARGV  1 owner  2 ttl in ms  3 proposal for the fence
-- Answer  {1, fence} if granted, also to an owner that holds it
--         {0, value of the lock key} if somebody holds it alone, or waits for it
-- Source  Leasehold's wire v1 (lease.lua)

local lock, fence, readers, queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, ttl, proposal = ARGV[1], ARGV[2], ARGV[3]

local value = redis.call('GET', lock)
if value and value ~= SHARED then
  return {0, value}
end
local now = now_ms()
if value and redis.call('EXISTS', queue) == 1 and not holds('shared', owner, lock, readers, now) then
  return {0, value}
end
share(lock, readers, SHARED, value, owner, ttl, now)
return {1, next_fence(fence, proposal)}
