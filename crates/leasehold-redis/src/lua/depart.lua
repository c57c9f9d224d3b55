-- Frees the lock where this very owner holds it, lets the rest time of the fence counter begin anew,
-- and hands the lock over to the next in the queue, or leaves it free for a while.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered
-- ARGV  1 'exclusive' or 'shared'  2 owner
--       3 'hand over', or 'leave free' and 4 for how many ms, or 'requeue' and 4 the waiter that is
--       put into the queue first, 5 since when it waits, in µs
-- Answer  1 freed, 0 the lease did not stand any more; {1 or 0, error} if what came then was not
--         done, or not told
-- Source  "Distributed Locks with Redis", releasing a lock; shared leases and the queue: Leasehold's
--         wire v1

local mode, owner, kind = ARGV[1], ARGV[2], ARGV[3]

-- What somebody left in the records of the queue keeps no lock from being freed: freed is first.
local held = let_go(mode, owner, lock, readers)
redis.call('PEXPIRE', fence, REST_MS)
held = held and 1 or 0

local function pass_on()
  if kind == 'requeue' then
    enqueue(entry_of(ARGV[4], mode), ARGV[5])
  end
  if kind == 'leave free' then
    if held == 1 and redis.call('EXISTS', lock) == 0 then
      local now, span = now_ms(), tonumber(ARGV[4])
      note(GAP, now + span)
      tell_next(1, span, now)
    end
  elseif redis.call('EXISTS', queue) == 1 and (held == 1 or kind == 'requeue')
    and redis.call('EXISTS', lock) == 0 then
    hand_over(now_ms())
  end
end

local failure = outcome(pcall(pass_on)) or unsaid
if failure then
  return {held, failure}
end
return held
