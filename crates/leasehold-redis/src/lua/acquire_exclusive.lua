-- Takes the lock alone, for servers before Redis 7.0, where SET cannot say NX and GET at once.
--
-- KEYS  1 lock key  2 fence counter
-- ARGV  1 owner  2 ttl in ms  3 proposal for the fence
-- Answer  {1, fence} if granted, also to an owner that holds it
--         {0, value of the lock key} if somebody else holds it
-- Source  "Distributed Locks with Redis", single instance; the fence rule is Leasehold's (lease.lua)

local lock, fence = KEYS[1], KEYS[2]
local owner, ttl, proposal = ARGV[1], ARGV[2], ARGV[3]

local value = redis.call('GET', lock)
if value and value ~= owner then
  return {0, value}
end
if not value then
  redis.call('SET', lock, owner, 'PX', ttl)
end
local drawn = next_fence(fence, proposal)
note_drawn(fence, owner, drawn, proposal)
return {1, drawn}
