-- What becomes of a lock that was freed: the end of release.lua, which says what there is to know.
--
-- KEYS  those of release.lua
-- ARGV  4 for how many ms the lock is left free, or the waiter that is put into the queue  5 since when
--       that one waits, in µs; the others are those of release.lua
-- Answer  that of release.lua
-- Source  Leasehold's wire v1, "the queue"

local function pass_on()
  if handed_to then
    tell_a_stand_in(is_of(handed_to), RESERVATION_MS, now_ms())
    return
  elseif departure == 'requeue' then
    enqueue(entry_of(ARGV[4], mode), ARGV[5])
  elseif not held then
    return
  end
  if redis.call('EXISTS', lock) == 1 then
    if offer_free then
      offer_free(now_ms(), redis.pcall('GET', lock))
    end
    return
  end
  if departure == 'leave free' then
    local now, span = now_ms(), tonumber(ARGV[4])
    note(GAP, now + span)
    tell_of_gap(span, now)
  else
    hand_over(now_ms())
  end
end

-- What somebody left in the records of the queue does not make a lock held that is free.
local failure = outcome(pcall(pass_on)) or unsaid
local freed = (held or handed_to) and 1 or 0
return failure and {freed, failure} or freed
