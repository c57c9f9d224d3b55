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
    share(lock, readers, SHARED, value == SHARED, owner, ttl, now)
    if value ~= SHARED then
      call_readers()
    end
  elseif value ~= owner then
    redis.call('SET', lock, owner, 'PX', ttl)
  end
  local drawn = next_fence(fence, proposal)
  return {1, seen(), drawn}
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
local next_up = value and reservation(value)
if not value or next_up then
  return try_unheld(value, next_up, grant)
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
