-- Reports that a client is alive, and asks about its oldest waiter of each lock. Repairs lost
-- notifications: it notifies the waiters of a lock that is free or shared.
--
-- KEYS  1 presence; then five for each lock: lock key, fence, queue, readers, slots
-- ARGV  1 client; then an entry for each lock
-- Answer  for each lock: {turn, value, left, place, ask again, cannot notify} as a refusal of acquire.lua, turn 2
--         if it is the waiter's turn and else 0; or the text of an error
-- Source  docs/wire.md, "Heartbeat"

call('ZADD', present, text(now + 2500), ARGV[1])
call('ZREMRANGEBYSCORE', present, '-inf', text(now))
call('PEXPIRE', present, 2500)
local receivers = redis.pcall('PUBLISH', 'leasehold:inbox:' .. ARGV[1], '')
local is_disconnected = type(receivers) == 'table' or receivers == 0

return each(function(number)
  open(number)
  local entry = ARGV[number + 1]
  call('PEXPIRE', queue, 10000)
  local turn = admits() ~= false and hand_over(entry)
  local answer = refusal(entry)
  answer[1] = turn and 2 or 0
  answer[6] = (is_disconnected or cannot_notify) and 1 or 0
  return answer
end)
