-- What becomes of permits that are free while others are held; it stands behind permits.lua and
-- queue.lua.
--
-- The first in the queue have their turn, as many as there are free permits, up to the first that wants
-- the lock in another way. They stay in the queue until they come. Under the entry of one that was told
-- so "offered" says until when that stands and of which permit, in one number; and under its client
-- when that lapses, as for a reservation (queue.lua).
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered; the last is slots
-- Source  Leasehold's wire v1, "the queue"

local OFFER_UNIT = 1000
local NO_SLOT = 999

local slots = KEYS[#KEYS]

local function note_offer(entry, slot, now)
  await(client_of(entry), now)
  note(entry, (now + RESERVATION_MS) * OFFER_UNIT + slot)
end

-- The offers that stand, {entry → slot}. Whatever else is in "offered" is a smaller number.
local function offers_at(now)
  local found, standing = redis.call('ZRANGE', offered, digits(now * OFFER_UNIT), '+inf', 'BYSCORE',
    'WITHSCORES'), {}
  for at = 1, #found, 2 do
    standing[found[at]] = found[at + 1] % OFFER_UNIT
  end
  return standing
end

-- The free permits in the order in which they are offered: first what nobody was told of, last the one
-- that is about to be taken.
local function in_order(free, standing, wanted)
  local told_of, first, last = {}, {}, {}
  for _, slot in pairs(standing) do
    told_of[slot] = true
  end
  for _, slot in ipairs(free) do
    local part = told_of[slot] and last or first
    if slot ~= wanted then
      part[#part + 1] = slot
    end
  end
  last[#last + 1] = wanted
  for _, slot in ipairs(last) do
    first[#first + 1] = slot
  end
  return first
end

-- Tells those whose turn it is, each of a free permit, but nobody twice while that stands. Answers
-- whether it is the turn of mine, who wants the permit wanted if it is free; whether anybody was told; and
-- how long it takes until the first is late of those who come before mine.
local function offer(now, count, free, mine, wanted)
  if #free == 0 then
    return false, false
  end
  local standing = offers_at(now)
  local order = in_order(free, standing, wanted)
  local turns, told, asked, its_turn, called, left = 0, 0, false, false, {}, nil
  from_the_oldest(function(entry)
    local client = client_of(entry)
    if turns == #free then
      return 'stop'
    elseif is_late(client, now) then
      return 'drop'
    elseif not wants_permit(entry) then
      local sight = show(entry, now)
      if sight == 'gone' then
        return 'drop'
      end
      asked = sight == 'asked'
      called[client], left = true, sooner(left, client, now)
      return 'stop'
    elseif mark_of(entry) ~= PERMIT_MARK .. count then
      -- It can have none of these, and learns so when it asks.
      hears(entry, 'turn')
      return 'drop'
    elseif entry == mine then
      its_turn = true
    else
      if not standing[entry] then
        local slot = order[told + 1]
        if not hears(entry, 'turn/' .. slot) then
          return 'drop'
        end
        note_offer(entry, slot, now)
        told = told + 1
      end
      called[client], left = true, sooner(left, client, now)
    end
    turns = turns + 1
  end)
  -- One that is refused in this step knows from the answer when to look again.
  if told > 0 or asked and (its_turn or not mine) then
    tell_a_stand_in(function(entry)
      return called[client_of(entry)] or entry == mine or not wants_permit(entry)
    end, RESERVATION_MS, now)
  end
  return its_turn, told > 0, left
end

-- Offers the permits that are free, if the lock key holds such a value. Answers whether anybody was told,
-- and how long it takes at most until the next one is free.
function offer_free(now, value)
  local count = type(value) == 'string' and count_of(string.sub(value, #'leasehold:' + 1))
  if not count or value ~= PERMITS .. count then
    return false
  end
  local _, free = permits_at(now, true, readers, slots, count)
  local _, told = offer(now, count, free)
  return told, soonest(now, readers)
end

