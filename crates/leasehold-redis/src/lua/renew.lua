-- Lets leases live for their whole TTL again, each where it still stands. Never takes a free lock. An
-- exclusive lease that is renewed as a shared one is shared from then on.
--
-- KEYS  three for each lease: lock key, fence counter, readers; and slots for one of permits
-- ARGV  four for each lease: mode, owner, ttl in ms, fence
-- Answer  for each lease: 1 renewed, 0 nobody holds the lock, -1 somebody else holds it, -2 an operator
--         broke it, or the text of the error that this one lease ran into; the others are not
--         touched by it
-- Source  "Distributed Locks with Redis", extending a lock; the others: Leasehold's wire v1

-- Why the lease of owner does not stand, by what the lock key holds instead.
local function lost(lock, owner)
  local value = redis.pcall('GET', lock)
  if not value or type(value) == 'string' and string.sub(value, 1, #RESERVED) == RESERVED then
    return 0
  end
  -- Also where what was noted of it is damaged; and who was broken may be another one.
  return value == BROKEN .. owner and -2 or -1
end

local function renew(lock, fence, readers, slots, mode, owner, ttl, number)
  local noted = noted_of(fence, owner)
  if noted and noted < 0 then
    return -2
  end
  local now = mode ~= 'exclusive' and now_ms()
  if not holds(mode, owner, lock, readers, now) then
    if mode ~= 'shared' or not lock_is(lock, owner) then
      return lost(lock, owner)
    end
    -- Never shorter than the exclusive lease, and in one step with its end: no writer comes between.
    ttl = math.max(ttl, redis.call('PTTL', lock))
    share(lock, readers, SHARED, false, owner, ttl, now)
  elseif mode == 'exclusive' then
    -- A late message must not shorten a lease that a younger one has lengthened.
    if redis.call('PTTL', lock) < ttl then
      redis.call('PEXPIRE', lock, ttl)
    end
    -- A lease that passed to another guard of its client has a greater fence than before.
    if noted and noted < tonumber(number) then
      note_fence(fence, owner, number)
    end
  else
    redis.call('ZADD', readers, 'GT', digits(now + ttl), owner)
    align_sentinel(lock, readers, slots)
  end
  redis.call('PEXPIRE', fence, REST_MS)
  return 1
end

local answers, key = {}, 1
for first = 1, #ARGV, 4 do
  local mode, owner, ttl = ARGV[first], ARGV[first + 1], tonumber(ARGV[first + 2])
  local number = ARGV[first + 3]
  local lock, fence, readers = KEYS[key], KEYS[key + 1], KEYS[key + 2]
  local slots = has_permits(mode) and KEYS[key + 3]
  key = key + (slots and 4 or 3)
  answers[#answers + 1] = outcome(pcall(renew, lock, fence, readers, slots, mode, owner, ttl, number))
end
return answers
