-- Takes a waiter out of the queue; what is kept for it is handed over to the next, and so are permits
-- that are free. Readers that it kept out are called.
--
-- KEYS  1 lock key  2 fence counter  3 readers  4 queue  5 offered  6 slots
-- ARGV  1 waiter
-- Answer  1, or {1, error} if the server refused to tell somebody something
-- Source  Leasehold's wire v1, "the queue"

local waiter = ARGV[1]

forget_offer(client_of(waiter))

-- It has one entry, but only it knows in which mode.
local function find(marks)
  for _, mark in ipairs(marks) do
    local rank = redis.call('ZRANK', queue, waiter .. mark)
    if rank then
      return rank, waiter .. mark
    end
  end
end

local rank, entry = find({'', SHARED_MARK})
if not rank then
  rank, entry = find(redis.call('ZRANGE', offered, 0, 0, 'BYSCORE'))
end
if entry then
  redis.call('ZREM', queue, entry)
  if rank == 0 and entry == waiter then
    -- The next one that keeps others out was not asked to show itself yet.
    forget_offer(SHOWS)
  end
end
-- Also a lock of another library may be under the key, of any type.
local value = redis.pcall('GET', lock)
local next_up = type(value) == 'string' and reservation(value)
local now = now_ms()
local gap = gap_left(now)
if next_up and waiter_of(next_up[2]) == waiter then
  redis.call('DEL', lock)
  hand_over(now)
elseif not value and gap == 0 then
  -- Whoever it was whose turn had come, nobody else was told.
  hand_over(now)
else
  local told, left = offer_free(now, value)
  if not told and rank and rank < 2 then
    -- Who was behind it keeps a timer of its own from now on.
    tell_next(2, left or value and rest() or gap, now)
  end
  if value == SHARED and entry and not is_shared(entry) then
    call_readers(now)
  end
end
return unsaid and {1, unsaid} or 1
