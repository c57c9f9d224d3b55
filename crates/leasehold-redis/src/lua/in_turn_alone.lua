-- The common answers to who wants the lock alone and waits in turn, in front of all else: it is kept
-- for this one, or somebody holds it alone. What the other scripts define costs more time than that;
-- whatever is not as usual is left to them. What is done here, and why, is said there.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered  6 card
-- ARGV  1 mode  2 owner  3 ttl in ms  4 proposal for the fence
--       5 waiter  6 since when it waits, in µs
-- Answer  that of acquire_in_turn.lua
-- Source  Leasehold's wire v1, "the queue"

local function seen_alone()
  local time = redis.call('TIME')
  local mark = redis.pcall('HGET', KEYS[6], 'mark')
  return {time[1], time[2], type(mark) == 'string' and mark or ''}
end

local function take_what_is_kept(owner, waiter)
  redis.call('ZREM', KEYS[5], string.sub(waiter, 1, CLIENT_LENGTH), CALLED, SHOWS)
  redis.call('ZREM', KEYS[4], waiter, waiter .. SHARED_MARK)
  redis.call('SET', KEYS[1], owner, 'PX', ARGV[3])
  -- The fence rule, max(counter, proposal) + 1: mostly the counter is not above the proposal.
  local drawn = string.format('%.0f', ARGV[4] + 1)
  if redis.call('ZADD', KEYS[2], 'GT', 'CH', drawn, COUNTER) == 0 then
    drawn = redis.call('ZINCRBY', KEYS[2], 1, COUNTER)
    -- Readers cannot derive it.
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '(0', '(' .. drawn)
    redis.call('ZADD', KEYS[2], 'NX', drawn, owner)
  end
  redis.call('PEXPIRE', KEYS[2], REST_MS)
  return {1, seen_alone(), drawn}
end

local function wait_for_holder(value, waiter, since)
  redis.call('ZREM', KEYS[5], string.sub(waiter, 1, CLIENT_LENGTH))
  redis.call('ZADD', KEYS[4], since, waiter)
  redis.call('PEXPIRE', KEYS[4], RECORD_MS)
  redis.call('ZREM', KEYS[4], waiter .. SHARED_MARK)
  local place = redis.call('ZRANK', KEYS[4], waiter) + 1
  return {0, seen_alone(), value, redis.call('PTTL', KEYS[1]), place}
end

if ARGV[1] == 'exclusive' and ARGV[5] ~= '' then
  local value, owner, waiter, since = redis.pcall('GET', KEYS[1]), ARGV[2], ARGV[5], ARGV[6]
  if value == RESERVED .. since .. ':' .. waiter then
    return take_what_is_kept(owner, waiter)
  elseif type(value) == 'string' and value ~= owner and string.sub(value, 1, #OURS) ~= OURS then
    return wait_for_holder(value, waiter, since)
  end
end

