-- A lease is given back, and another waiter of its client asks behind it, in one step: who is not the
-- next in the queue makes way for who is, as in any attempt on a lock that is free.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered  6 card
-- ARGV  1 'exclusive'  2 owner  3 ttl in ms  4 proposal for the fence
--       5 waiter  6 since when it waits, in µs  7 the owner of the exclusive lease that is given back
-- Answer  {that of release.lua, that of acquire_in_turn.lua}
-- Source  "Distributed Locks with Redis", releasing a lock; the queue: Leasehold's wire v1

local freed = 0
if redis.pcall('GET', KEYS[1]) == ARGV[7] then
  freed = redis.call('DEL', KEYS[1])
end

