-- Puts exclusive leases back, each where its key is free, and raises the counter to its fence.
-- Changes nothing elsewhere.
--
-- KEYS  two for each lease: lock key, fence counter
-- ARGV  three for each lease: owner, ttl in ms, fence
-- Answer  for each lease: 1 put back, 0 the key is not free, or the text of the error that this one
--         lease ran into; the others are not touched by it
-- Source  Leasehold's healing over Redlock, proven in its quorum model

local function heal(lock, fence, owner, ttl, floor)
  if redis.call('EXISTS', lock) == 1 then
    return 0
  end
  -- First: where the counter is damaged, no lease is put back that could be followed by one with a
  -- smaller fence.
  redis.call('ZADD', fence, 'GT', floor, COUNTER)
  redis.call('PEXPIRE', fence, REST_MS)
  redis.call('SET', lock, owner, 'PX', ttl)
  return 1
end

local answers = {}
for lease = 1, #KEYS / 2 do
  local lock, fence = KEYS[2 * lease - 1], KEYS[2 * lease]
  local owner, ttl, floor = ARGV[3 * lease - 2], ARGV[3 * lease - 1], ARGV[3 * lease]
  answers[lease] = outcome(pcall(heal, lock, fence, owner, ttl, floor))
end
return answers
