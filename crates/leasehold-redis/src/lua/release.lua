-- Frees the lock where this very owner holds it, and lets the rest time of the fence counter begin
-- anew.
--
-- KEYS  1 lock key  2 fence counter  3 readers
-- ARGV  1 'exclusive' or 'shared'  2 owner
-- Answer  1 freed, 0 the lease did not stand any more
-- Source  "Distributed Locks with Redis", releasing a lock; shared leases: Leasehold's wire v1

local lock, fence, readers = KEYS[1], KEYS[2], KEYS[3]
local mode, owner = ARGV[1], ARGV[2]

local now = mode == 'shared' and now_ms()
local held = holds(mode, owner, lock, readers, now)
if mode == 'exclusive' then
  if held then
    redis.call('DEL', lock)
  end
else
  redis.call('ZREM', readers, owner)
  if lock_is(lock, SHARED) then
    redis.call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. string.format('%.0f', now))
    -- No reader that stays or comes ever shortens the sentinel. The departure of the longest one
    -- lets it end with the longest that remains: otherwise a reader that died with a short lease
    -- would keep writers out for the long TTL of one that has left.
    align_sentinel(lock, readers)
  end
end
redis.call('PEXPIRE', fence, REST_MS)
return held and 1 or 0
