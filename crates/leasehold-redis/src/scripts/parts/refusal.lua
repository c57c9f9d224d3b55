-- The answer to a request that was not granted.
--
-- Source  docs/wire.md, "Acquire"

-- The answer to a request that was not granted:
--   {0, value of the lock key, ms left of what holds it or < 0, place or 0, ms until the waiter asks again
--   or -1, 1 if the server refused to notify a waiter}
local function refusal(entry)
  local place = (call('ZRANK', queue, entry) or -1) + 1
  local left, ask = call('PTTL', lock), -1
  local is_foreign = value and not string.find(value, '^leasehold:')
    and not (#value == 49 and string.find(value, '^%x+%.%x+$'))
  if is_foreign then
    call('ZADD', fence, text(now), 'foreign')
    call('PEXPIRE', fence, REST_MS)
  end
  local shares = #entry > 51 and value == sentinel(string.sub(entry, 50))
  if shares then
    -- The waiter at place p may get the permit whose lease is the p-th to end.
    local skip = math.max(place - 1, 0)
    local ends = call('ZRANGEBYSCORE', readers, '(' .. text(now), '+inf', 'WITHSCORES', 'LIMIT', skip, 1)[2]
    left = ends and ends - now or left
    -- A waiter further behind waits for a notification.
    shares = ends
  end
  if notified_until and place <= 2 then
    -- Only the next waiter asks, in case the notified one is dead. Otherwise all would ask at the same moment.
    ask = notified_until - now
  elseif place == 1 and (is_foreign or not value) then
    -- Foreign clients notify no waiter.
    ask = 25
  elseif place == 1 or shares and place > 0 then
    ask = left
  end
  return {0, value, left, place, ask, cannot_notify and 1 or 0}
end
