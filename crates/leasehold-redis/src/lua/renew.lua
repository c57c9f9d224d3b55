-- Lets leases live for their whole TTL again, each where it still stands. Never takes a free lock.
--
-- KEYS  three for each lease: lock key, fence counter, readers
-- ARGV  three for each lease: 'exclusive' or 'shared', owner, ttl in ms
-- Answer  for each lease: 1 renewed, 0 the lock is free, -1 somebody else holds it, or the text of
--         the error that this one lease ran into; the others are not touched by it
-- Source  "Distributed Locks with Redis", extending a lock; shared leases: Leasehold's wire v1

local function renew(lock, fence, readers, mode, owner, ttl)
  local now = now_ms()
  if not holds(mode, owner, lock, readers, now) then
    return redis.call('EXISTS', lock) == 0 and 0 or -1
  end
  if mode == 'exclusive' then
    -- A late message must not shorten a lease that a younger one has lengthened.
    if redis.call('PTTL', lock) < ttl then
      redis.call('PEXPIRE', lock, ttl)
    end
  else
    redis.call('ZADD', readers, 'GT', string.format('%.0f', now + ttl), owner)
    align_sentinel(lock, readers)
  end
  redis.call('PEXPIRE', fence, REST_MS)
  return 1
end

local answers = {}
for first = 1, #KEYS, 3 do
  local lock, fence, readers = KEYS[first], KEYS[first + 1], KEYS[first + 2]
  local mode, owner, ttl = ARGV[first], ARGV[first + 1], tonumber(ARGV[first + 2])
  local done, answer = pcall(renew, lock, fence, readers, mode, owner, ttl)
  if not done then
    -- Errors are tables from Redis 7.0 on, and texts before.
    answer = type(answer) == 'table' and answer.err or tostring(answer)
  end
  answers[#answers + 1] = answer
end
return answers
