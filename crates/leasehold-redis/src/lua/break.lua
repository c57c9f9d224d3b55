-- Breaks the exclusive lease of an owner: from now on it is not renewed and not put back. Where it
-- stands, the lock stays shut until it would have ended, or is handed over at once: depart.lua, behind
-- this and queue.lua.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered  6 record of the break
-- ARGV  1 owner  2 the fence of its lease  3 'hand over' if at once, else ''  4 how long the record is kept,
--       in ms, then its fields and values
-- Answer  {1, for how many ms it stays shut} where the lease stands, 0 where it does not; at once that of
--         release.lua
-- Source  Leasehold's wire v1, "broken locks"

-- So many owners whose lease was broken are remembered.
local REMEMBERED_MAX = 16

local lock, fence, record = KEYS[1], KEYS[2], KEYS[6]
local owner, departure, mode = ARGV[1], ARGV[3], 'exclusive'
local tombstone = BROKEN .. owner

-- First, so that a renewal can never outlive what follows. They are in the order of their fences, the
-- greatest first, as those of broken leases are noted below 0.
redis.call('ZADD', fence, '-' .. ARGV[2], owner)
redis.call('PEXPIRE', fence, REST_MS)
local remembered = redis.call('ZRANGE', fence, REMEMBERED_MAX, -1, 'WITHSCORES')
for at = 1, #remembered, 2 do
  if tonumber(remembered[at + 1]) < 0 then
    redis.call('ZREM', fence, remembered[at])
  end
end

local held = lock_is(lock, owner) or lock_is(lock, tombstone)
if held then
  redis.call('DEL', record)
  redis.call('HSET', record, unpack(ARGV, 5))
  redis.call('PEXPIRE', record, ARGV[4])
end
if departure == '' then
  if not held then
    return 0
  end
  redis.call('SET', lock, tombstone, 'KEEPTTL')
  return {1, redis.call('PTTL', lock)}
end
if not (held and redis.call('DEL', lock) == 1) then
  return 0
end

