-- Writes a record unless a greater stamp was seen.
--
-- KEYS  1 record  2 greatest stamp
-- ARGV  1 fence  2 step  3 value  4 retention in ms
-- Answer  1 written; or the greatest stamp
-- Source  docs/wire.md, "Records": single-decree consensus with fences as ballots, as in CASPaxos

local record, greatest, stamp = KEYS[1], KEYS[2], ARGV[1] .. '.' .. ARGV[2]
local seen = newest(record, greatest)
if is_after(seen, stamp) then
  return seen
end
redis.call('SET', greatest, stamp, 'PX', MEMORY_MS)
redis.call('HSET', record, 'stamp', stamp, 'value', ARGV[3])
redis.call('PEXPIRE', record, ARGV[4])
return 1
