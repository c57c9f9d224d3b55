-- What the scripts of records have in common; it is put in front of each of them.
--
-- A record is two keys: a HASH with what is written, its stamp and its bytes, which lives as long as
-- it is to be kept; and a STRING with the greatest stamp that was here, which outlives it, so that
-- who comes late is known as late also when nothing is written any more. A stamp is "fence.step";
-- opening with a fence is its step 0.

-- How long it is remembered who was here: 7 days, as long as a key's fences.
local MEMORY_MS = 7 * 24 * 60 * 60 * 1000

-- Both numbers of a stamp; 0, 0 for none. Each is below 2^53, and exact in a double.
local function numbers(stamp)
  local fence, step = string.match(stamp or '', '^(%d+)%.(%d+)$')
  return tonumber(fence or 0), tonumber(step or 0)
end

-- The greatest stamp that is known. A value is often kept for longer than it is remembered who was here.
local function newest(record, greatest)
  local seen, written = redis.call('GET', greatest), redis.call('HGET', record, 'stamp')
  local seen_fence, seen_step = numbers(seen)
  local fence, step = numbers(written)
  if fence > seen_fence or (fence == seen_fence and step > seen_step) then
    return written
  end
  return seen
end

-- What is written, and for how many milliseconds more; nothing, where nothing is.
local function shown(record)
  local stamp = redis.call('HGET', record, 'stamp')
  if not stamp then
    return {}
  end
  return {stamp, redis.call('HGET', record, 'value'), redis.call('PTTL', record)}
end
