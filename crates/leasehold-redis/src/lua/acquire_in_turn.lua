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

local function grant(value)
  local takes_alone = mode ~= 'shared' and value ~= owner
  if takes_alone then
    -- Whoever it makes the lock shared for was not called, nor who then keeps them out asked to show itself.
    redis.call('ZREM', offered, CALLED, SHOWS)
  end
  leave_the_queue()
  if mode == 'shared' then
    share(lock, readers, SHARED, value == SHARED, owner, ttl, now)
    if value == SHARED then
      call_forgotten_readers(now)
    else
      call_readers(now)
    end
  elseif takes_alone then
    redis.call('SET', lock, owner, 'PX', ttl)
  end
  local drawn = next_fence(fence, proposal)
  if mode ~= 'shared' then
    note_drawn(fence, owner, drawn, proposal)
  end
  return {1, seen(), drawn}
end

-- Whether one who wants no share, and is there, waits for longer than this reader; and how long it takes
-- until that one is late.
local function is_kept_out()
  local behind, left, somebody_is_gone = false, nil, false
  from_the_oldest(function(entry)
    if entry == mine then
      return 'stop'
    elseif is_shared(entry) then
      return
    elseif show(entry, now) == 'gone' then
      somebody_is_gone = true
      return 'drop'
    end
    behind, left = true, sooner(nil, client_of(entry), now)
    return 'stop'
  end)
  if somebody_is_gone then
    -- Also where the next one keeps this reader out: others stand between the two.
    call_readers(now, mine)
  end
  return behind, left
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
  local behind, left = is_kept_out()
  if not behind then
    return grant(value)
  end
  return busy(value, left and math.min(left, rest()))
end
return busy(value)
