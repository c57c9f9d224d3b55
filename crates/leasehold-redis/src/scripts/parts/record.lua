-- What the scripts of records share.
--
-- A record is two keys. A HASH has the value and its stamp, and lives for the retention. A STRING has
-- the greatest stamp ever seen and outlives it, so a late writer is refused even after the value
-- expired. A stamp is `<fence>.<step>`; opening with a fence is its step 0.
--
-- Source  docs/wire.md, "Records"

local MEMORY_MS = 604800000

-- Both numbers of a stamp; 0, 0 for none.
local function numbers(stamp)
  local fence, step = string.match(stamp or '', '^(%d+)%.(%d+)$')
  return tonumber(fence or 0), tonumber(step or 0)
end

local function is_after(stamp, other)
  local fence, step = numbers(stamp)
  local other_fence, other_step = numbers(other)
  return fence > other_fence or (fence == other_fence and step > other_step)
end

-- The greatest known stamp. The value may live longer than the memory of the greatest stamp.
local function newest(record, greatest)
  local seen, written = redis.call('GET', greatest), redis.call('HGET', record, 'stamp')
  return is_after(written, seen) and written or seen
end

local function shown(record)
  local stamp = redis.call('HGET', record, 'stamp')
  if not stamp then
    return {}
  end
  return {stamp, redis.call('HGET', record, 'value'), redis.call('PTTL', record)}
end
