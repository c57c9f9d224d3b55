-- Opens a record: from now on smaller fences are refused.
--
-- KEYS  1 record  2 the greatest stamp that was here
-- ARGV  1 fence
-- Answer  {stamp, bytes, ms left} what is written, {} nothing is; or the greatest stamp, as text, of a
--         greater fence that was here
-- Source  Leasehold's records (wire v1): single-decree consensus with fences as ballots, as in CASPaxos

local record, greatest = KEYS[1], KEYS[2]
local fence = ARGV[1]

local seen = newest(record, greatest)
local seen_fence = numbers(seen)
if seen_fence > tonumber(fence) then
  return seen
end
if seen_fence == tonumber(fence) then
  redis.call('SET', greatest, seen, 'PX', MEMORY_MS)
else
  redis.call('SET', greatest, fence .. '.0', 'PX', MEMORY_MS)
end
return shown(record)
