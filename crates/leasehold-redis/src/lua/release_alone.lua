-- The common end of a lease, in front of all else: an exclusive one stands, and nobody waits. What the
-- other scripts define costs more time than that.
--
-- KEYS  1 lock key  2 queue  3 readers  4 offered
-- ARGV  1 owner of an exclusive lease that is handed over
-- Or both are those of release.lua.
-- Answer  that of release.lua

local stands = #ARGV == 1 and redis.pcall('GET', KEYS[1]) == ARGV[1]
if stands and redis.call('EXISTS', KEYS[2]) == 0 then
  return redis.call('DEL', KEYS[1])
end

-- What follows has a place for the counter, which nobody who frees a lock asks.
local KEYS = #ARGV == 1 and {KEYS[1], false, KEYS[3], KEYS[2], KEYS[4]} or KEYS
local ARGV = #ARGV == 1 and {'exclusive', ARGV[1], 'hand over'} or ARGV

