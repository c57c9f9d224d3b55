-- Puts exclusive leases back, each where its key is free and not left free for others, and raises the
-- counter to its fence. Changes nothing elsewhere.
--
-- KEYS  three for each lease: lock key, fence counter, offered
-- ARGV  three for each lease: owner, ttl in ms, fence
-- Answer  for each lease: 1 put back, 0 the key is not free, or an operator broke it, or the text of the error that this one
--         lease ran into; the others are not touched by it
-- Source  Leasehold's healing over Redlock, proven in its quorum model

local function heal(lock, fence, offered, owner, ttl, floor)
  if redis.call('EXISTS', lock) == 1 then
    return 0
  end
  if (noted_of(fence, owner) or 0) < 0 then
    return 0
  end
  local gap = redis.call('ZSCORE', offered, GAP)
  if gap and tonumber(gap) > now_ms() then
    return 0
  end
  -- First: where the counter is damaged, no lease is put back that could be followed by one with a
  -- smaller fence.
  note_fence(fence, owner, floor)
  redis.call('PEXPIRE', fence, REST_MS)
  redis.call('SET', lock, owner, 'PX', ttl)
  return 1
end

local answers = {}
for first = 1, #KEYS, 3 do
  local lock, fence, offered = KEYS[first], KEYS[first + 1], KEYS[first + 2]
  local owner, ttl, floor = ARGV[first], ARGV[first + 1], ARGV[first + 2]
  answers[#answers + 1] = outcome(pcall(heal, lock, fence, offered, owner, ttl, floor))
end
return answers
