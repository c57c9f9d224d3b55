-- The common end of hand_on.lua, in front of all else: who asks is the first in the queue. What the
-- other scripts define costs more time than that. Whatever is not as usual is left to them, with nothing
-- done.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered  6 card
-- ARGV  1 mode  2 owner  3 ttl in ms  4 proposal for the fence
--       5 waiter  6 since when it waits, in µs  7 the owner that gave the lock back
-- Answer  that of acquire_in_turn.lua

local function nothing_is_offered(now)
  local offered = redis.pcall('ZRANGE', KEYS[5], 0, 1, 'WITHSCORES')
  if #offered == 0 then
    return not offered.err
  end
  -- The lock was left free for a while, and is not any more.
  return #offered == 2 and offered[1] == GAP and tonumber(offered[2]) <= now
end

if freed == 1 and redis.pcall('ZRANK', KEYS[4], ARGV[5]) == 0 then
  local time = redis.call('TIME')
  if nothing_is_offered(time[1] * 1000 + math.floor(time[2] / 1000)) then
    redis.call('ZREM', KEYS[4], ARGV[5], ARGV[5] .. SHARED_MARK)
    redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
    -- The fence rule, max(counter, proposal) + 1: mostly the counter is not above the proposal. Its rest
    -- began anew not long ago, or the release would have seen to that, and be a command by itself.
    local drawn = string.format('%.0f', ARGV[4] + 1)
    if redis.call('ZADD', KEYS[2], 'GT', 'CH', drawn, COUNTER) == 0 then
      drawn = redis.call('ZINCRBY', KEYS[2], 1, COUNTER)
      -- Readers cannot derive it.
      redis.call('ZREMRANGEBYSCORE', KEYS[2], '(0', '(' .. drawn)
      redis.call('ZADD', KEYS[2], 'NX', drawn, ARGV[2])
    end
    local mark = redis.pcall('HGET', KEYS[6], 'mark')
    return {1, {time[1], time[2], type(mark) == 'string' and mark or ''}, drawn}
  end
end

