-- Writes a record unless a greater version was seen.
--
-- KEYS  1 record  2 greatest version
-- ARGV  1 fence  2 step  3 value  4 retention in ms
-- Answer  1 written; or the greatest version
-- Source  docs/wire.md, "Records": single-decree consensus with fences as ballots, as in CASPaxos

local record, greatest, version = KEYS[1], KEYS[2], ARGV[1] .. '.' .. ARGV[2]
local seen = newest(record, greatest)
if is_after(seen, version) then
  return seen
end
redis.call('SET', greatest, version, 'PX', MEMORY_MS)
redis.call('HSET', record, 'version', version, 'value', ARGV[3])
redis.call('PEXPIRE', record, ARGV[4])
return 1
