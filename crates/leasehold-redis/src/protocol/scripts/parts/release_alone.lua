-- The common release, in front of all helpers: an exclusive lease is valid, and the queue is empty.
--
-- KEYS  2 lock key  4 queue; the others are those of release.lua
-- ARGV  1 entry  2 ticket, or ''  4 entry of a successor; the others are those of release.lua
-- Answer  that of release.lua
-- Source  docs/wire.md, "Release"

local stands = ARGV[2] == '' and not ARGV[4] and redis.pcall('GET', KEYS[2]) == ARGV[1]
if stands and redis.call('EXISTS', KEYS[4]) == 0 then
  redis.call('DEL', KEYS[2])
  return {1, 0}
end
