-- A lease is given back, and another waiter of its client asks behind it, in one step: who is not the
-- next in the queue makes way for who is, as in any attempt on a lock that is free.
--
-- KEYS  those of acquire_in_turn.lua
-- ARGV  those of acquire_in_turn.lua, and 7 the owner of the exclusive lease that is given back
-- Answer  {that of release.lua, that of acquire_in_turn.lua}
-- Source  "Distributed Locks with Redis", releasing a lock; the queue: Leasehold's wire v1

local freed = 0
if redis.pcall('GET', KEYS[1]) == ARGV[7] then
  freed = redis.call('DEL', KEYS[1])
end

