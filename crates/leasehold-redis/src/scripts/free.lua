-- Frees an exclusive lock that no other request waits for. It takes few keys, since it handles most releases.
--
-- KEYS  1 lock key  2 queue
-- ARGV  1 owner
-- Answer  1 freed; 0 nothing was changed, call release.lua
-- Source  docs/wire.md, "Release"

if redis.pcall('GET', KEYS[1]) == ARGV[1] and redis.call('EXISTS', KEYS[2]) == 0 then
  return redis.call('DEL', KEYS[1])
end
return 0
