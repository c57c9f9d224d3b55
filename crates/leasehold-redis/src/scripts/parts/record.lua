-- What the scripts of records share.
--
-- A record is two keys. A HASH has the value and its version, and lives for the retention. A STRING has
-- the greatest version ever seen and outlives it, so a late writer is refused even after the value
-- expired. A version is `<fence>.<step>`; opening with a fence is its step 0.
--
-- Source  docs/wire.md, "Records"

local MEMORY_MS = 604800000

-- Both numbers of a version; 0, 0 for none.
local function numbers(version)
  local fence, step = string.match(version or '', '^(%d+)%.(%d+)$')
  return tonumber(fence or 0), tonumber(step or 0)
end

local function is_after(version, other)
  local fence, step = numbers(version)
  local other_fence, other_step = numbers(other)
  return fence > other_fence or (fence == other_fence and step > other_step)
end

-- The greatest known version. The value may live longer than the memory of the greatest version.
local function newest(record, greatest)
  local seen, written = redis.call('GET', greatest), redis.call('HGET', record, 'version')
  return is_after(written, seen) and written or seen
end

local function shown(record)
  local version = redis.call('HGET', record, 'version')
  if not version then
    return {}
  end
  return {version, redis.call('HGET', record, 'value'), redis.call('PTTL', record)}
end
