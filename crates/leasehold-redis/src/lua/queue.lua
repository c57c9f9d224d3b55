-- What the scripts about the queue have in common; it stands behind lease.lua and in front of them.
--
-- Who waits is in the queue: `<waiter>`, or `<waiter>/s` for one that wants to share the lock, or
-- `<waiter>/p<n>` for one that wants one of n permits; its score the instant since which it waits, in
-- microseconds. Entries of one instant are ordered by their text, which is the order of waiters, since
-- all are of one length.
--
-- A lock that becomes free is kept for the first in the queue who hears of it:
-- `leasehold:next:<since>:<entry>` is under the lock key for RESERVATION_MS, and the entry is out of
-- the queue. "offered" says of a client when what was kept for it lapses. Past that instant, without
-- having been heard since, it is late: it may be dead, and its entries are dropped. Under GAP
-- "offered" says until when a free lock is left free; and with a score of 0, which marks of permits
-- may be found in the queue. Under SHOWS it says until when nobody else is asked to show itself, as long as
-- the one that was keeps its place; and under CALLED until when readers that wait need not be called again.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered
-- Source  Leasehold's wire v1, "the queue"

local PERMIT_MARK = '/p'

local lock, fence, readers, queue, offered = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

-- What becomes of the permits that are free while others are held: offers.lua says it, where there are
-- any.
local offer_free = nil

-- Set once the server has refused to tell somebody something: its error.
local unsaid = nil

local function client_of(entry)
  return string.sub(entry, 1, CLIENT_LENGTH)
end

local function is_shared(entry)
  return string.sub(entry, -#SHARED_MARK) == SHARED_MARK
end

local function waiter_of(entry)
  return string.sub(entry, 1, WAITER_LENGTH)
end

local function mark_of(entry)
  return string.sub(entry, WAITER_LENGTH + 1)
end

local function wants_permit(entry)
  return string.sub(mark_of(entry), 1, #PERMIT_MARK) == PERMIT_MARK
end

local function entry_of(waiter, mode)
  if mode == 'shared' then
    return waiter .. SHARED_MARK
  end
  return has_permits(mode) and waiter .. PERMIT_MARK .. string.sub(mode, 9) or waiter
end

-- Whether the client of entry heard word. Where the user may not publish, nobody ever hears
-- anything, and all must count as alive.
local function hears(entry, word)
  local told = word .. ' ' .. waiter_of(entry) .. ' ' .. lock
  local heard = redis.pcall('PUBLISH', INBOX .. client_of(entry), told)
  if type(heard) == 'table' then
    unsaid = heard.err
    return true
  end
  return heard > 0
end

local function soon(ms)
  return 'soon ' .. digits(ms)
end

-- How long it takes at most until something becomes of the lock.
local function rest()
  local left = redis.call('PTTL', lock)
  return left >= 0 and left or RESERVATION_MS
end

local function lapses(name)
  return tonumber(redis.call('ZSCORE', offered, name) or 0)
end

local function is_late(client, now)
  local at = lapses(client)
  return at > 0 and at < now
end

local function gap_left(now)
  return math.max(lapses(GAP) - now, 0)
end

local function note(name, lapses_at)
  redis.call('ZADD', offered, digits(lapses_at), name)
  redis.call('PEXPIRE', offered, RECORD_MS)
end

-- From now on it counts against the client if it is not heard in time. Of several things that it does
-- not answer the first one tells that it is late.
local function await(client, now)
  redis.call('ZADD', offered, 'NX', digits(now + RESERVATION_MS), client)
end

-- How long it takes until the first is late, of a client and those of whom that is left.
local function sooner(left, client, now)
  local own = lapses(client) - now
  return own > 0 and math.min(left or own, own) or left
end

-- The client was heard.
local function forget_offer(name)
  redis.call('ZREM', offered, name)
end

-- The entry that the same waiter may have had before: who made its lock shared asks as a reader where
-- it still waits as a writer.
local function twin_of(entry)
  return is_shared(entry) and waiter_of(entry) or waiter_of(entry) .. SHARED_MARK
end

local function enqueue(entry, since)
  redis.call('ZADD', queue, since, entry)
  redis.call('PEXPIRE', queue, RECORD_MS)
  if wants_permit(entry) then
    note(mark_of(entry), 0)
    -- What it was offered before is past: it has come, or is put back.
    forget_offer(entry)
  else
    redis.call('ZREM', queue, twin_of(entry))
  end
end

-- Calls visit with each entry from the oldest on, until it answers 'stop'; 'drop' takes the entry
-- out. Looks at few at a time, since the first are mostly enough.
local function from_the_oldest(visit)
  local kept = 0
  while true do
    local page = redis.call('ZRANGE', queue, kept, kept + FEW - 1)
    if #page == 0 then
      return
    end
    for _, entry in ipairs(page) do
      local told = visit(entry)
      if told == 'stop' then
        return
      end
      if told == 'drop' then
        redis.call('ZREM', queue, entry)
      else
        kept = kept + 1
      end
    end
  end
end

local function drop_client(client)
  from_the_oldest(function(entry)
    return client_of(entry) == client and 'drop'
  end)
end

-- Tells the first count who hear it that it is their turn soon, but no client that is late. Who does
-- not hear is dropped.
local function tell_next(count, ms, now)
  from_the_oldest(function(entry)
    if is_late(client_of(entry), now) then
      return
    end
    if not hears(entry, soon(ms)) then
      return 'drop'
    end
    count = count - 1
    return count == 0 and 'stop'
  end)
end

-- Tells somebody who is not as dead as those whose turn it is, and hears it, that they may be dead: the
-- first of the next few, or else the last of all. Whoever asks then has the first one chosen anew; so
-- it need not be the one whose turn it is, and no long queue need be searched.
local function tell_a_stand_in(is_fellow, ms, now)
  local told, passed = false, 0
  local function visit(entry)
    if is_fellow(entry) or is_late(client_of(entry), now) then
      passed = passed + 1
      return passed == FEW and 'stop'
    end
    told = hears(entry, soon(ms))
    return told and 'stop' or 'drop'
  end
  from_the_oldest(visit)
  if passed == FEW and not told then
    for _, entry in ipairs(redis.call('ZRANGE', queue, -FEW, -1)) do
      local verdict = visit(entry)
      if verdict == 'drop' then
        redis.call('ZREM', queue, entry)
      elseif told then
        return
      end
    end
  end
end

-- Whether an entry is of this client, or mine, which asks itself.
local function is_of(client, mine)
  return function(entry)
    return client_of(entry) == client or entry == mine
  end
end

-- Whether one is there that keeps others out of what they could share: 'seen', just 'asked' to show
-- itself, or 'gone'. Hearing is not enough: the connection of one whose machine lost power stands.
local function show(entry, now)
  local client = client_of(entry)
  if is_late(client, now) then
    return 'gone'
  elseif lapses(SHOWS) >= now then
    -- Also in the last millisecond of its time, when it is not late yet.
    return 'seen'
  elseif not hears(entry, soon(0)) then
    return 'gone'
  end
  note(SHOWS, now + RESERVATION_MS)
  await(client, now)
  return 'asked'
end

-- Whether the next few behind an entry, as far as they want to share the lock, have to wait for it. One
-- of them learns when it is late, if it is.
local function keeps_others_out(keeper, now, mine)
  local at, behind = redis.call('ZRANK', queue, keeper), {}
  for _, entry in ipairs(redis.call('ZRANGE', queue, at + 1, at + FEW)) do
    if is_shared(entry) and entry ~= mine and client_of(entry) ~= client_of(keeper) then
      behind[#behind + 1] = entry
    end
  end
  local sight = #behind == 0 and 'seen' or show(keeper, now)
  for _, entry in ipairs(sight == 'asked' and behind or {}) do
    if hears(entry, soon(RESERVATION_MS)) then
      break
    end
  end
  return sight ~= 'gone'
end

-- All who want to share the lock, and wait in front of everybody who does not, may come; mine does.
local function call_readers(now, mine)
  local told = false
  from_the_oldest(function(entry)
    if not is_shared(entry) then
      return keeps_others_out(entry, now, mine) and 'stop' or 'drop'
    elseif entry ~= mine then
      if not hears(entry, 'turn') then
        return 'drop'
      end
      told = true
    end
  end)
  if told then
    note(CALLED, now + RESERVATION_MS)
  end
end

-- Who comes in beside readers calls those in front of whom nobody waits any more, unless that was done
-- just now. Nobody did where the lock was made shared, since the script that renews knows no queue.
local function call_forgotten_readers(now)
  local head = redis.call('ZRANGE', queue, 0, 0)[1]
  if head and is_shared(head) and lapses(CALLED) < now then
    call_readers(now)
  end
end

local function reserve(entry, since, ms)
  redis.call('SET', lock, RESERVED .. since .. ':' .. entry, 'PX', digits(ms))
end

-- The ticket of a reservation, {since, entry}, or nothing.
local function reservation(value)
  local since, entry = string.match(value, '^' .. RESERVED .. '(%d+):(%x+%.%x+/?[sp]?%d*)$')
  return since and {since, entry}
end

-- Tells the first, and one of another client, when the free lock is theirs: the first may be dead, and
-- nobody else would know when the time is over.
local function tell_of_gap(rest, now)
  local head = redis.call('ZRANGE', queue, 0, 0)[1]
  if head then
    tell_next(1, rest, now)
    tell_a_stand_in(is_of(client_of(head)), rest, now)
  end
end

-- Chooses among all who wait for a lock that is free, and keeps it for that one. Where the choice
-- falls on mine, nothing is kept and nobody told: answers true.
local function hand_over(now, mine)
  local gap = gap_left(now)
  if gap > 0 then
    -- Somebody had it meanwhile: those who asked then learned when that one's lease would end.
    tell_of_gap(gap, now)
    return false
  end
  while true do
    local head = redis.call('ZRANGE', queue, 0, 0, 'WITHSCORES')
    local entry = head[1]
    if not entry then
      return false
    end
    local client = client_of(entry)
    if is_late(client, now) then
      drop_client(client)
    elseif entry == mine then
      return true
    else
      redis.call('ZREM', queue, entry)
      if hears(entry, 'turn') then
        await(client, now)
        redis.call('PEXPIRE', offered, RECORD_MS)
        -- What it has not answered before decides when it is late; nothing is kept for it beyond that, or
        -- one that is dead costs that time twice. A client is not late yet in the millisecond itself, and
        -- a clock may have been set back.
        local left = math.max(math.min(lapses(client) - now, RESERVATION_MS), 1)
        reserve(entry, digits(tonumber(head[2])), left)
        tell_a_stand_in(is_of(client, mine), left, now)
        return false
      end
    end
  end
end

