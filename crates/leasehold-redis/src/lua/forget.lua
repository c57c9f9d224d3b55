-- Removes the counter of a lock that nobody holds, waits for, or has reserved, and that is not left free
-- for others just now; and with it what "offered" remembers.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 slots  6 offered
-- Answer  1 nothing is left, 0 the lock is in use
-- Source  Leasehold's wire v1: a counter outlives the last use of its lock

local lock, fence, offered = KEYS[1], KEYS[2], KEYS[6]

local function is_left_free()
  local gap = redis.pcall('ZSCORE', offered, GAP)
  if type(gap) == 'table' then
    -- Of another type: not ours to remove.
    return true
  end
  local time = redis.call('TIME')
  return gap and tonumber(gap) > time[1] * 1000 + math.floor(time[2] / 1000)
end

if redis.call('EXISTS', lock, unpack(KEYS, 3, 5)) > 0 or is_left_free() then
  return 0
end
redis.call('DEL', fence, offered)
return 1
