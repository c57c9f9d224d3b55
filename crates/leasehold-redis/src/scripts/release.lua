-- Frees a lease, ends a wait, or gives a failed attempt back. Then it hands the lock over. If a waiter of
-- the same client is next, this grants it the lock in the same step.
--
-- KEYS  1 presence  2 lock key  3 fence  4 queue  5 readers  6 slots
-- ARGV  1 entry  2 entry that takes its place in the queue, or ''  3 ticket of that entry, or ''
--       4 length of a gap for foreign clients in ms, 0 for none  5 to 9 those of acquire.lua for a successor
-- Answer  {1 the lease was valid or 0, cannot notify}, and the grant of acquire.lua if the successor has the lock now
-- Source  docs/wire.md, "Release" and "Turns for foreign clients"

-- Returns whether the lease was valid, and whether it ends now. That of a broken lease says that its owner has ended.
local function free(entry)
  local owner, mark = split(entry)
  local member = holds(entry)
  if value == owner or value == BROKEN .. owner then
    -- Also that of a lease that was to become shared, and has not.
    local was_valid = value == owner
    call('DEL', lock)
    value = false
    return was_valid, true
  elseif member then
    leave(owner, mark, member)
    return true, true
  end
  member = mark ~= '' and lease_of(BROKEN .. owner, mark)
  if member then
    leave(BROKEN .. owner, mark, member)
  end
  return false, member
end

-- Begins a gap if one is due: the lock is free for all clients, including those of other libraries.
local function begin_gap(length)
  -- A lock that was held until now is in no gap.
  gap = 0
  if length == 0 or call('EXISTS', queue) == 0 then
    return
  end
  local ended, every = last_gap()
  local since = now - ended
  if since >= every then
    -- After a long time without contention the period begins anew, without a gap.
    gap = since < 4 * every and now + length or now
    call('ZADD', fence, text(gap), 'gap')
  end
end

local entry = ARGV[1]
local was_valid, freed = free(entry)
local was_queued = not freed and call('ZREM', queue, entry, (split(entry))) > 0
if ARGV[2] ~= '' then
  enqueue(ARGV[2], ARGV[3])
end
if freed and not value then
  begin_gap(tonumber(ARGV[4]))
end
local admitted, successor = admits(), nil
if admitted ~= false and (admitted == nil or freed or was_queued) then
  -- Refusing a successor of another mode could drop it, and this answer does not say so.
  local may_join = ARGV[5] and (not admitted or admitted == select(2, split(ARGV[5])))
  local answer = may_join and acquire(unpack(ARGV, 5, 9))
  successor = answer and answer[1] == 1 and answer or nil
  if not successor and not notified_until then
    hand_over()
  end
  keep_for_head()
end
return {was_valid and 1 or 0, cannot_notify and 1 or 0, successor}
