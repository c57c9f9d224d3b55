-- What the scripts that deal with permits have in common; it stands behind readers.lua.
--
-- Beside what a lock has that is held together, "slots" says whose each permit is: a HASH, its fields
-- the numbers from 0 on, its values the owners. An entry is true only while the lease of its owner
-- stands among the readers. It is written anew with each grant, and ends with the sentinel.
--
-- Source  Leasehold's wire v1, "the lock key"

local function count_of(mode)
  return tonumber(string.match(mode, '^permits:(%d%d?%d?)$'))
end

-- Who has which of count permits at the instant now, by number, and a list of those that are free. With
-- none held all are. Where the records of those that are do not agree, none is: somebody may have a
-- permit of which nothing is written any more.
local function permits_at(now, are_held, readers, slots, count)
  local taken, free, agree = {}, {}, not are_held
  if are_held then
    redis.call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. digits(now))
    local owners, stands, known = redis.call('ZRANGE', readers, 0, -1), {}, 0
    for _, owner in ipairs(owners) do
      stands[owner] = true
    end
    local written = redis.call('HGETALL', slots)
    for at = 1, #written, 2 do
      local slot, owner = tonumber(written[at]), written[at + 1]
      if slot and stands[owner] then
        taken[slot] = owner
        known = known + 1
      end
    end
    agree = known > 0 and known == #owners
  end
  for slot = 0, agree and count - 1 or -1 do
    if not taken[slot] then
      free[#free + 1] = slot
    end
  end
  return taken, free
end

-- Which of the free permits one gets who wishes for this one, or for none (''); nothing if it is taken.
local function choose(wish, free)
  for _, slot in ipairs(free) do
    if wish == '' or slot == tonumber(wish) then
      return slot
    end
  end
end

-- Gives the permit to owner; taken says whose the others are.
local function take(slot, taken, lock, readers, slots, mode, owner, ttl, now)
  local joins, fields = next(taken) ~= nil, {slot, owner}
  for other, holder in pairs(taken) do
    fields[#fields + 1] = other
    fields[#fields + 1] = holder
  end
  redis.call('DEL', slots)
  redis.call('HSET', slots, unpack(fields))
  share(lock, readers, sentinel_of(mode), joins, owner, ttl, now, slots)
end

-- How long it takes at most until a permit is free.
local function soonest(now, readers)
  local first = redis.call('ZRANGE', readers, 0, 0, 'WITHSCORES')
  return math.max((first[2] or now) - now, 0)
end

