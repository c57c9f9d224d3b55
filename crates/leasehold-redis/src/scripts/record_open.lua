-- Opens a record: the server refuses smaller fences from now on.
--
-- KEYS  1 record  2 greatest version
-- ARGV  1 fence
-- Answer  {version, value, ms left} or {} if there is no value;
--         or the greatest version if its fence is greater
-- Source  docs/wire.md, "Records": single-decree consensus with fences as ballots, as in CASPaxos

local record, greatest, fence = KEYS[1], KEYS[2], ARGV[1]
local seen = newest(record, greatest)
local seen_fence = numbers(seen)
if seen_fence > tonumber(fence) then
  return seen
end
local version = seen_fence == tonumber(fence) and seen or fence .. '.0'
redis.call('SET', greatest, version, 'PX', MEMORY_MS)
return shown(record)
