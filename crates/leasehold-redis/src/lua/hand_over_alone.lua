-- The common hand-over, behind release_alone.lua and in front of all else: an exclusive lease stands, and
-- the first who waits hears that it is its turn. What the other scripts define costs more time than that.
-- Whatever is not as usual is left to them, with nothing done but that somebody was told to stand in, or
-- with all done but that. What is done here, and why, is said in queue.lua.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered
-- ARGV  those of release.lua
-- Answer  that of release.lua
-- Source  Leasehold's wire v1, "the queue"

local function client_in(entry)
  return string.sub(entry, 1, CLIENT_LENGTH)
end

local function has_told(entry, word)
  local told = word .. ' ' .. string.sub(entry, 1, WAITER_LENGTH) .. ' ' .. KEYS[1]
  local heard = redis.pcall('PUBLISH', INBOX .. client_in(entry), told)
  return type(heard) == 'number' and heard > 0
end

local function of_another_client(head, entries)
  for _, entry in ipairs(entries) do
    if client_in(entry) ~= client_in(head) then
      return entry
    end
  end
end

-- From now on it counts against the head's client if it is not heard in time. Not where the lock is left
-- free for a while, nor where that client has yet to be heard after an earlier turn: it may be late.
local function awaits(client)
  local gap = redis.pcall('ZSCORE', KEYS[5], GAP)
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  -- What somebody left under this name may be of any type: then an error takes the place of the score.
  if gap and (type(gap) ~= 'string' or tonumber(gap) > now) then
    return false
  end
  local lapses = string.format('%.0f', now + RESERVATION_MS)
  return redis.pcall('ZADD', KEYS[5], 'NX', lapses, client) == 1
end

-- Whether nobody has to be told any more to stand in for the head: one of another client was, or there
-- is none.
local function is_stood_in_for(head, behind)
  local other = of_another_client(head, behind)
  if not other and #behind == FEW then
    other = of_another_client(head, redis.call('ZRANGE', KEYS[4], -FEW, -1))
  end
  if not other then
    return true
  end
  -- Who has yet to be heard may be late.
  local is_heard = not redis.call('ZSCORE', KEYS[5], client_in(other))
  return is_heard and has_told(other, 'soon ' .. RESERVATION_MS)
end

-- Keeps the lock for the head of the queue, which was told, and is awaited.
local function keep_for(head, since)
  local value = RESERVED .. string.format('%.0f', since) .. ':' .. head
  redis.call('SET', KEYS[1], value, 'PX', RESERVATION_MS)
  redis.call('ZREM', KEYS[4], head)
  redis.call('PEXPIRE', KEYS[5], RECORD_MS)
end

if stands then
  local first = redis.pcall('ZRANGE', KEYS[4], 0, FEW, 'WITHSCORES')
  local head = first[1]
  if head and awaits(client_in(head)) then
    -- The head last: a server writes first to those for whom it has had something the shortest.
    local stood_in_for = is_stood_in_for(head, {first[3], first[5], first[7], first[9]})
    if not has_told(head, 'turn') then
      redis.call('ZREM', KEYS[5], client_in(head))
    else
      keep_for(head, first[2])
      if stood_in_for then
        return 1
      end
      handed_to = client_in(head)
    end
  end
end
