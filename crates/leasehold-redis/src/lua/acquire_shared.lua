-- Takes the lock together with other readers.
--
-- KEYS  1 lock key  2 fence counter  3 readers
-- ARGV  1 owner  2 ttl in ms  3 proposal for the fence
-- Answer  {1, fence} if granted, also to an owner that holds it
--         {0, value of the lock key} if somebody holds it alone
-- Source  Leasehold's wire v1 (lease.lua)

local lock, fence, readers = KEYS[1], KEYS[2], KEYS[3]
local owner, ttl, proposal = ARGV[1], ARGV[2], ARGV[3]

local value = redis.call('GET', lock)
if value and value ~= SHARED then
  return {0, value}
end
local now = now_ms()
if value then
  redis.call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. string.format('%.0f', now))
else
  -- Without the sentinel somebody may have held the lock alone since: leases of readers that are
  -- still written here are over, and must not come back to life with the new sentinel.
  redis.call('SET', lock, SHARED, 'PX', ttl)
  redis.call('DEL', readers)
end
-- GT: asking again never shortens a lease that was renewed meanwhile.
redis.call('ZADD', readers, 'GT', string.format('%.0f', now + ttl), owner)
align_sentinel(lock, readers)
return {1, next_fence(fence, proposal)}
