-- Leases that several owners hold together: shared ones and permits.
--
-- Source  docs/wire.md, "Shared leases" and "Permits"

-- Makes the sentinel end with the longest lease. Without a lease the lock is free.
local function align()
  local last = call('ZRANGE', readers, -1, -1, 'WITHSCORES')[2]
  if not last or tonumber(last) <= now then
    call('DEL', lock, readers, slots)
    value = false
    return
  end
  for _, key in ipairs({lock, readers, slots}) do
    call('PEXPIREAT', key, text(last))
  end
end

-- Gives a permit to an owner. An expired lease may have left the permit to another owner, or another permit to
-- this owner. Those fields go, so that each owner has one permit and each permit one owner.
local function assign(slot, owner)
  call('HDEL', slots, call('HGET', slots, slot) or '', call('HGET', slots, owner) or '')
  call('HSET', slots, slot, owner, owner, slot)
end

-- Adds a lease, or extends it. The member is the owner of a shared lease, or the permit.
local function share(entry, member, ttl)
  local owner, mark = split(entry)
  local is_permit = mark ~= '/s'
  if value ~= sentinel(mark) then
    -- Leases that are still stored here ended with the previous sentinel.
    value = sentinel(mark)
    call('SET', lock, value, 'PX', ttl)
    call('DEL', readers, slots)
    if is_permit then
      local all = {}
      for slot = 0, string.sub(mark, 3) - 1 do
        all[2 * slot + 1], all[2 * slot + 2] = 0, slot
      end
      call('ZADD', readers, unpack(all))
    end
  end
  if is_permit then
    assign(member, owner)
  else
    call('ZREMRANGEBYSCORE', readers, '-inf', text(now))
  end
  -- The clock is rounded down, so 1 ms more. A late message shortens no lease.
  call('ZADD', readers, 'GT', text(now + ttl + 1), member)
  align()
end

-- Gives a lease to another owner, until the same end. Returns its member of readers.
local function rename(owner, other, mark, member)
  if mark == '/s' then
    call('ZADD', readers, call('ZSCORE', readers, owner), other)
    call('ZREM', readers, owner)
    return other
  end
  assign(member, other)
  return member
end

-- Ends a lease: that of a reader, or of the owner of a permit, which is free from now on.
local function leave(owner, mark, member)
  if mark == '/s' then
    call('ZREM', readers, owner)
  else
    call('ZADD', readers, text(now), member)
    call('HDEL', slots, owner, member)
  end
  align()
end
