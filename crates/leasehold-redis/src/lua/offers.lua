-- What becomes of permits that are free while others are held; it stands behind permits.lua and
-- queue.lua.
--
-- The first in the queue have their turn, as many as there are free permits, up to the first that wants
-- the lock in another way. They stay in the queue until they come. That one of them was told is in
-- "offered" under its entry, until that lapses, and under its client as for a reservation (queue.lua).
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered; the last is slots
-- Source  Leasehold's wire v1, "the queue"

local slots = KEYS[#KEYS]

local function note_offer(entry, now)
  local lapses_at = digits(now + RESERVATION_MS)
  -- What a client has not answered counts from the first offer on.
  redis.call('ZADD', offered, 'NX', lapses_at, client_of(entry))
  note(entry, lapses_at)
end

-- The free permits, with the one that is spoken for behind the others.
local function with_last(free, last)
  local order = {}
  for _, slot in ipairs(free) do
    if slot ~= last then
      order[#order + 1] = slot
    end
  end
  order[#order + 1] = last
  return order
end

-- Tells those whose turn it is, each of a free permit of its own, but nobody twice while that stands.
-- Answers which permit mine gets: the one that it wishes for, if it is its turn and that one is free.
local function offer(now, count, free, mine, wish)
  if #free == 0 then
    return
  end
  local wanted = mine and choose(wish, free)
  local order, turns, its_turn, told = with_last(free, wanted), 0, false, {}
  from_the_oldest(function(entry)
    if turns == #free then
      return 'stop'
    end
    if entry == mine then
      turns, its_turn = turns + 1, true
      return
    end
    if is_late(client_of(entry), now) then
      return 'drop'
    end
    if not wants_permit(entry) then
      return hears(entry, soon(rest())) and 'stop' or 'drop'
    end
    if mark_of(entry) ~= PERMIT_MARK .. count then
      -- It can have none of these, and learns so when it asks.
      hears(entry, 'turn')
      return 'drop'
    end
    if lapses(entry) <= now then
      local slot = order[its_turn and wanted and turns or turns + 1]
      if not hears(entry, 'turn/' .. slot) then
        return 'drop'
      end
      note_offer(entry, now)
      told[client_of(entry)] = true
    end
    turns = turns + 1
  end)
  if its_turn and not wanted then
    note_offer(mine, now)
  end
  if next(told) then
    tell_a_stand_in(function(entry)
      return told[client_of(entry)] or entry == mine and its_turn or lapses(entry) > now
    end, RESERVATION_MS, now)
  end
  return its_turn and wanted
end

-- Where the lock has permits and some are free, offers them; answers whether that is so.
function offer_free(now, value)
  local count = type(value) == 'string' and count_of(string.sub(value, #'leasehold:' + 1))
  if not count or value ~= PERMITS .. count then
    return false
  end
  local _, free = permits_at(now, true, readers, slots, count)
  offer(now, count, free)
  return #free > 0
end

