-- Writes a record, unless a greater stamp was here.
--
-- KEYS  1 record  2 the greatest stamp that was here
-- ARGV  1 fence  2 step  3 bytes  4 ms for which they are kept
-- Answer  1 written; or the greatest stamp that was here, as text
-- Source  Leasehold's records (wire v1): single-decree consensus with fences as ballots, as in CASPaxos

local record, greatest = KEYS[1], KEYS[2]
local fence, step, bytes, retention = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local seen = newest(record, greatest)
local seen_fence, seen_step = numbers(seen)
local mine, my_step = tonumber(fence), tonumber(step)
if seen_fence > mine or (seen_fence == mine and seen_step > my_step) then
  return seen
end
local stamp = fence .. '.' .. step
redis.call('SET', greatest, stamp, 'PX', MEMORY_MS)
redis.call('HSET', record, 'stamp', stamp, 'value', bytes)
redis.call('PEXPIRE', record, retention)
return 1
