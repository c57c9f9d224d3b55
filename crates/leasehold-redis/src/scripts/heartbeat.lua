-- Reports that a client is alive, and asks about its oldest waiter of each lock. Repairs lost
-- notifications: it notifies the waiters of a lock that is free or shared. Drops some dead entries.
--
-- KEYS  1 presence; then five for each lock: lock key, fence, queue, readers, slots
-- ARGV  1 client; then an entry for each lock
-- Answer  for each lock: {turn, value, left, place, ask again, cannot notify} as a refusal of acquire.lua, turn 2
--         if it is the waiter's turn and else 0; or the text of an error
-- Source  docs/wire.md, "Heartbeat"

-- How many entries of a queue one call looks at.
local LOOKS = 32

-- Drops dead entries, also behind a live one. Each second, and from each place in the queue, a call looks
-- at another part of the queue.
local function sweep(entry)
  local parts = math.ceil(call('ZCOUNT', queue, '-inf', '+inf') / LOOKS)
  local place = call('ZRANK', queue, entry) or 0
  local first = parts > 0 and (math.floor(now / 1000) + place) % parts * LOOKS or 0
  local seen, clients = call('ZRANGE', queue, first, first + LOOKS - 1), {}
  for at, other in ipairs(seen) do
    clients[at] = string.sub(other, 1, 16)
  end
  local ends = #seen > 0 and call('ZMSCORE', present, unpack(clients))
  for at, other in ipairs(seen) do
    if tonumber(ends[at] or 0) <= now then
      call('ZREM', queue, other)
    end
  end
end

call('ZADD', present, text(now + 2500), ARGV[1])
call('ZREMRANGEBYSCORE', present, '-inf', text(now))
call('PEXPIRE', present, 2500)
local receivers = redis.pcall('PUBLISH', 'leasehold:inbox:' .. ARGV[1], '')
local is_disconnected = type(receivers) == 'table' or receivers == 0

return each(function(number)
  open(number)
  local entry = ARGV[number + 1]
  call('PEXPIRE', queue, 10000)
  sweep(entry)
  local turn = admits() ~= false and hand_over(entry)
  local answer = refusal(entry)
  answer[1] = turn and 2 or 0
  answer[6] = (is_disconnected or cannot_notify) and 1 or 0
  return answer
end)
