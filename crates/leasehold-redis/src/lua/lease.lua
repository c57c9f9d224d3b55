-- What the scripts have in common; it is put in front of each of them, behind words.lua.
--
-- A lease is one of three things (wire v1, "the lock key"), called by its mode:
--   exclusive:   the lock key holds the owner;
--   shared:      the lock key holds SHARED, and the owner is in the ZSET of readers, its score the
--                end of its lease in milliseconds of this server's clock;
--   permits:<n>: as shared, but the lock key holds PERMITS and the number n, and the HASH of slots
--                says which of the n permits is the owner's (permits.lua).
-- Behind RESERVED the lock key says for whom the lock is kept; that is no lease (queue.lua).
-- The sentinels SHARED and PERMITS keep out every client that takes the plain key with SET NX, be it
-- ours or of another library ("Distributed Locks with Redis",
-- https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/).

local SHARED = 'leasehold:shared'
local PERMITS = 'leasehold:permits:'

-- Behind this the lock key names the owner whose lease an operator broke, until that would have ended.
local BROKEN = 'leasehold:broken:'

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A whole number as text: Lua would write a large one with an exponent.
local function digits(number)
  return string.format('%.0f', number)
end

-- Whether the lock key holds value. A key of another type is a lock of another library: it does not.
local function lock_is(lock, value)
  local found = redis.pcall('GET', lock)
  if type(found) ~= 'table' then
    return found == value
  end
  if string.find(found.err, 'WRONGTYPE', 1, true) then
    return false
  end
  -- Any other error, such as a missing right, says nothing about the lock: it is raised again.
  return redis.call('GET', lock) == value
end

-- What the lock key holds while the lock is held together, in a mode that is not exclusive.
local function sentinel_of(mode)
  return 'leasehold:' .. mode
end

local function has_permits(mode)
  return string.sub(mode, 1, 8) == 'permits:'
end

-- Whether the lease of owner stands; one that is held together, at the instant now.
local function holds(mode, owner, lock, readers, now)
  if mode == 'exclusive' then
    return lock_is(lock, owner)
  end
  if not lock_is(lock, sentinel_of(mode)) then
    return false
  end
  local ends = redis.call('ZSCORE', readers, owner)
  return ends and tonumber(ends) >= now
end

-- Lets the sentinel live exactly as long as the longest lease of a reader, which the ZSET knows; and
-- the slots, where there are any. The scores are instants of this server's clock, as PEXPIREAT wants
-- them.
local function align_sentinel(lock, readers, slots)
  local last = redis.call('ZRANGE', readers, -1, -1, 'WITHSCORES')
  if #last == 0 then
    redis.call('DEL', lock)
    if slots then
      redis.call('DEL', slots)
    end
    return
  end
  local ends = digits(tonumber(last[2]))
  redis.call('PEXPIREAT', lock, ends)
  redis.call('PEXPIREAT', readers, ends)
  if slots then
    redis.call('PEXPIREAT', slots, ends)
  end
end

-- The note of an owner next to the counter: the fence of the last renewal of its exclusive lease, or of its
-- grant if that is not the proposal + 1; a number below 0 once the lease was broken; nil if the record is
-- damaged. A reader derives a fence that is not noted from the owner, which names the proposal.
local function noted_of(fence, owner)
  local score = redis.pcall('ZSCORE', fence, owner)
  if type(score) == 'table' then
    return nil
  end
  return score and tonumber(score) or 0
end

-- Notes the fence of an exclusive lease, in place of those of leases before it. The counter is none of
-- them, also where this fence was sealed on others only.
local function note_fence(fence, owner, number)
  redis.call('ZADD', fence, 'GT', number, COUNTER)
  redis.call('ZREMRANGEBYSCORE', fence, '(0', '(' .. number)
  redis.call('ZADD', fence, number, owner)
end

-- Notes the fence that an exclusive lease was granted, where readers cannot derive it. The mark of a broken
-- lease stays.
local function note_drawn(fence, owner, drawn, proposal)
  if tonumber(drawn) ~= proposal + 1 and (noted_of(fence, owner) or 0) >= 0 then
    note_fence(fence, owner, drawn)
  end
end

-- The answer for one lease of many, as pcall gives it. Errors are tables from Redis 7.0 on, and
-- texts before.
local function outcome(done, answer)
  if done then
    return answer
  end
  return type(answer) == 'table' and answer.err or tostring(answer)
end

-- The fence rule: max(counter, proposal) + 1, as text, since Lua would cut it to 14 digits.
local function next_fence(fence, proposal)
  redis.call('ZADD', fence, 'GT', proposal, COUNTER)
  local drawn = redis.call('ZINCRBY', fence, 1, COUNTER)
  redis.call('PEXPIRE', fence, REST_MS)
  return drawn
end
