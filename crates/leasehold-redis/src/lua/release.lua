-- Frees the lock where this very owner holds it, and says what becomes of the lock then: depart.lua,
-- behind this and queue.lua. The client sees to the rest time of the fence counter.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered; 6 slots for a lease of permits
-- ARGV  1 mode; 'shared' frees an exclusive lease too  2 owner
--       3 'hand over' to the next in the queue, or 'leave free' and 4 for how many ms, or 'requeue'
--       and 4 the waiter that is put into the queue first, 5 since when it waits, in µs
-- Answer  1 freed, 0 the lease did not stand any more; {1 or 0, error} if what was to become of the
--         lock was not done, or not told
-- Source  "Distributed Locks with Redis", releasing a lock; the other leases and the queue: Leasehold's
--         wire v1

local lock, readers, queue = KEYS[1], KEYS[3], KEYS[4]
local mode, owner, departure = ARGV[1], ARGV[2], ARGV[3]
local slots = KEYS[6]

local now = mode ~= 'exclusive' and now_ms()
local held = not handed_to and holds(mode, owner, lock, readers, now)
if mode == 'exclusive' then
  if held then
    redis.call('DEL', lock)
  end
else
  redis.call('ZREM', readers, owner)
  if lock_is(lock, sentinel_of(mode)) then
    redis.call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. digits(now))
    -- No reader that stays or comes ever shortens the sentinel. The departure of the longest one
    -- lets it end with the longest that remains: otherwise a reader that died with a short lease
    -- would keep writers out for the long TTL of one that has left.
    align_sentinel(lock, readers, slots)
  elseif mode == 'shared' and lock_is(lock, owner) then
    -- It was to become shared, and has not.
    held = redis.call('DEL', lock) == 1
  end
end
-- Mostly nobody waits: then that is all, and what follows is not even defined.
local is_over = departure ~= 'requeue' and not (held and redis.call('EXISTS', queue) == 1)
if is_over and not handed_to then
  return held and 1 or 0
end

