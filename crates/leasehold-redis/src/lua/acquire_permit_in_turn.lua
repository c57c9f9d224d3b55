-- Takes one of the permits of the lock in the order of tickets, or ahead of it. Who does not get one in
-- turn is in the queue afterwards, unless the lock is held with another number of permits.
--
-- KEYS  those of in_turn.lua; 7 slots
-- ARGV  those of in_turn.lua; 7 the permit that is wanted, or '' for any
-- Answer  that of acquire_in_turn.lua. Where the lock has as many permits a refusal says how long it is
--         until one of them ends, and behind it stand those that are free, if it is the waiter's turn
-- Source  Leasehold's wire v1, "the queue"

local wish, count = ARGV[7], count_of(mode)

if queued then
  forget_offer(client_of(waiter))
end
local value = redis.call('GET', lock)
local joins = value == sentinel_of(mode)
local next_up = value and reservation(value)
if value and not joins and not next_up then
  if string.sub(value, 1, #PERMITS) == PERMITS then
    return {0, seen(), value, -1, 0}
  end
  return busy(value)
end

local function granted()
  local drawn = next_fence(fence, proposal)
  return {1, seen(), drawn}
end

if joins and holds(mode, owner, lock, readers, now) then
  leave_the_queue()
  share(lock, readers, value, joins, owner, ttl, now, slots)
  return granted()
end
local taken, free = permits_at(now, joins, readers, slots, count)

local function give(slot)
  leave_the_queue()
  take(slot, taken, lock, readers, slots, mode, owner, ttl, now)
end

if not joins then
  return try_unheld(value, next_up, function()
    give(choose(wish, free))
    local _, left = permits_at(now, true, readers, slots, count)
    offer(now, count, left)
    return granted()
  end)
end
local slot, its_turn, left = choose(wish, free), true, soonest(now, readers)
if queued then
  enqueue(mine, since)
  local turn, _, late_in = offer(now, count, free, mine, slot)
  its_turn = turn
  if not turn then
    left = math.min(left, late_in or left)
  end
end
if its_turn and slot then
  give(slot)
  return granted()
end
local answer = busy(value, left)
answer[6] = its_turn and free or {}
if queued and its_turn then
  -- It knows of the others, and is expected to take one.
  note_offer(mine, NO_SLOT, now)
end
return answer
