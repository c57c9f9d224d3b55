-- The second round of the fence: "if the claim still holds here, let the counter be at least this".
-- Without the question whether it holds, a later owner could be granted the same fence. Where others
-- hold it together with this one, they could have it already: only who raises the counter seals.
--
-- KEYS  1 lock key  2 fence counter  3 readers
-- ARGV  1 mode  2 owner  3 fence
-- Answer  1 sealed, 0 the claim does not hold, {counter} it had come so far for others
-- Source  Leasehold's fence rule over Redlock, proven in its quorum model

local lock, fence, readers = KEYS[1], KEYS[2], KEYS[3]
local mode, owner, floor = ARGV[1], ARGV[2], ARGV[3]

local now = mode ~= 'exclusive' and now_ms()
if not holds(mode, owner, lock, readers, now) then
  return 0
end
if mode == 'exclusive' then
  redis.call('ZADD', fence, 'GT', floor, COUNTER)
elseif redis.call('ZADD', fence, 'GT', 'CH', floor, COUNTER) == 0 then
  return {redis.call('ZSCORE', fence, COUNTER)}
end
redis.call('PEXPIRE', fence, REST_MS)
return 1
