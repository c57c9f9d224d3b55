-- Takes the lock in the order of tickets, or ahead of it. Whoever does not get it in turn is in the
-- queue afterwards.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered  6 card
-- ARGV  1 'exclusive' or 'shared'  2 owner  3 ttl in ms  4 proposal for the fence
--       5 waiter  6 since when it waits, in µs; both empty for one that goes ahead of the queue
-- Answer  {1, seen, fence} if granted, also to an owner that holds it
--         {0, seen, value of the lock key or nothing, how long until then in ms or -1, place or 0}
--         where seen is {seconds, microseconds, mark of the card or ''}, and behind it the error of
--         the server if it refused to tell somebody something
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

-- All who want to share the lock, and wait in front of everybody who does not, come with the first.
local function call_readers()
  from_the_oldest(function(entry)
    if not is_shared(entry) then
      return 'stop'
    end
    return not hears(entry, 'turn') and 'drop'
  end)
end

local function grant(value)
  if queued then
    redis.call('ZREM', queue, mine)
  end
  if mode == 'shared' then
    share(lock, readers, value == SHARED, owner, ttl, now)
    if value ~= SHARED then
      call_readers()
    end
  elseif value ~= owner then
    redis.call('SET', lock, owner, 'PX', ttl)
  end
  local drawn = next_fence(fence, proposal)
  return {1, seen(), drawn}
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

local function is_older(ticket)
  local theirs, own = tonumber(ticket[1]), tonumber(since)
  if theirs ~= own then
    return theirs < own
  end
  return waiter_of(ticket[2]) < waiter
end

-- Whether a writer waits for longer than this reader, and hears that it is next.
local function is_behind_a_writer()
  local behind = false
  from_the_oldest(function(entry)
    if entry == mine then
      return 'stop'
    end
    if is_shared(entry) then
      return
    end
    behind = hears(entry, soon(rest()))
    return behind and 'stop' or 'drop'
  end)
  return behind
end

if queued then
  forget_offer(client_of(waiter))
end
local value = redis.call('GET', lock)
if value == owner or (value == SHARED and holds(mode, owner, lock, readers, now)) then
  return grant(value)
end
if not value then
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
local next_up = reservation(value)
if next_up then
  if queued and is_older(next_up) then
    return busy(value)
  end
  if not queued or waiter_of(next_up[2]) ~= waiter then
    enqueue(next_up[2], next_up[1])
  end
  return grant()
end
if value == SHARED and mode == 'shared' then
  if not queued then
    return grant(value)
  end
  enqueue(mine, since)
  if not is_behind_a_writer() then
    return grant(value)
  end
end
return busy(value)
