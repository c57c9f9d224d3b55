-- Takes one of the permits of the lock. Does not join those who have one while somebody waits.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 slots
-- ARGV  1 owner  2 ttl in ms  3 proposal for the fence  4 mode  5 the permit that is wanted, or '' for
--       any
-- Answer  {1, fence} if granted, also to an owner that has a permit
--         {0, value of the lock key} if it is held in another mode, or with another number of permits
--         {0, value of the lock key, how long it takes at most until a permit is free, in ms, the
--         permits that could be had instead} if that one or all are taken, or if somebody waits
-- Source  Leasehold's wire v1 (permits.lua)

local lock, fence, readers, queue, slots = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, ttl, proposal, mode, wish = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local value = redis.call('GET', lock)
local joins = value == sentinel_of(mode)
if value and not joins then
  return {0, value}
end
local now = now_ms()
if joins and holds(mode, owner, lock, readers, now) then
  share(lock, readers, value, joins, owner, ttl, now, slots)
else
  local taken, free = permits_at(now, joins, readers, slots, count_of(mode))
  local slot = choose(wish, free)
  local overtakes = joins and redis.call('EXISTS', queue) == 1
  if overtakes or not slot then
    return {0, value, soonest(now, readers), overtakes and {} or free}
  end
  take(slot, taken, lock, readers, slots, mode, owner, ttl, now)
end
return {1, next_fence(fence, proposal)}
