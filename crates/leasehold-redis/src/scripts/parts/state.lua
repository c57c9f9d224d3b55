-- The state of one lock, as all scripts see it.
--
-- KEYS  1 presence; then five for each lock: lock key, fence, queue, readers, slots
-- Source  docs/wire.md, "Keys" and "The lock key"

local SHARED, PERMITS = 'leasehold:shared', 'leasehold:permits:'
local NEXT, BROKEN = 'leasehold:next', 'leasehold:broken:'
local REST_MS = 604800000

local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local present = KEYS[1]
local lock, fence, queue, readers, slots
-- What the lock key holds; false if nothing. A lock of another type appears as leasehold:type:<type>.
local value
-- When the presence of the first waiter that this call notified ends; whether the server refused to notify.
local notified_until, cannot_notify
-- When the last gap for foreign clients ended, once this call has read it.
local gap

-- Numbers above 10^14 would get an exponent.
local function text(number)
  return string.format('%.0f', number)
end

local function open(number)
  lock, fence, queue, readers, slots = unpack(KEYS, 5 * number - 3, 5 * number + 1)
  notified_until, gap = nil, nil
  value = redis.pcall('GET', lock)
  if type(value) == 'table' then
    local is_of_other_type = string.find(value.err, 'WRONGTYPE', 1, true)
    value = is_of_other_type and 'leasehold:type:' .. call('TYPE', lock).ok or call('GET', lock)
  end
end

-- An entry is an owner followed by the mark of its mode: '' exclusive, '/s' shared, '/p<n>' one of n permits.
local function split(entry)
  return string.sub(entry, 1, 49), string.sub(entry, 50)
end

-- What the lock key holds while owners with this mark hold the lock together.
local function sentinel(mark)
  return mark == '/s' and SHARED or PERMITS .. string.sub(mark, 3)
end

-- Returns true, or the owner or permit in readers, if the owner has a valid lease with this mark.
local function lease_of(owner, mark)
  if mark == '' then
    return value == owner
  elseif value ~= sentinel(mark) then
    return false
  end
  local member = mark == '/s' and owner or call('HGET', slots, owner)
  local ends = member and call('ZSCORE', readers, member)
  return ends and tonumber(ends) > now and member
end

local function holds(entry)
  return lease_of(split(entry))
end
