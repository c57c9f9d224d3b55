-- What attempts in turn have in common; it stands behind queue.lua.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered  6 card
-- ARGV  1 mode  2 owner  3 ttl in ms  4 proposal for the fence
--       5 waiter  6 since when it waits, in µs; both empty for one that goes ahead of the queue
-- Source  Leasehold's wire v1, "the queue"

local mode, owner, ttl, proposal = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local waiter, since = ARGV[5], ARGV[6]

local queued = waiter ~= ''
local mine = queued and entry_of(waiter, mode)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function seen()
  -- The mark is no reason to fail: a user that may not read it can still lock.
  local mark = redis.pcall('HGET', KEYS[6], 'mark')
  return {time[1], time[2], type(mark) == 'string' and mark or '', unsaid}
end

local function busy(value, left)
  local place = 0
  if queued then
    enqueue(mine, since)
    place = redis.call('ZRANK', queue, mine) + 1
  end
  left = left or redis.call('PTTL', lock)
  local waits = seen()
  return {0, waits, value or false, left, place}
end

local function leave_the_queue()
  if queued then
    redis.call('ZREM', queue, mine, twin_of(mine))
  end
end

local function is_older(ticket)
  local theirs, own = tonumber(ticket[1]), tonumber(since)
  if theirs ~= own then
    return theirs < own
  end
  return waiter_of(ticket[2]) < waiter
end

-- An attempt on a lock that nobody holds: it is free, or kept for the one with the ticket next_up.
local function try_unheld(value, next_up, grant)
  if next_up then
    if queued and is_older(next_up) then
      return busy(value)
    end
    if not queued or waiter_of(next_up[2]) ~= waiter then
      enqueue(next_up[2], next_up[1])
    end
    return grant()
  end
  if not queued then
    return grant()
  end
  enqueue(mine, since)
  local gap = gap_left(now)
  if gap > 0 then
    return busy(nil, gap)
  end
  if hand_over(now, mine) then
    return grant()
  end
  return busy(redis.call('GET', lock))
end

