-- What the scripts of the member record share: a HASH, one for each database, that never expires.
--
-- Source  docs/wire.md, "The member record"

-- Each admission of a peer adds this to the generation, below which the number of the configuration is.
local ADMISSION = 4294967296

-- Microseconds since 1970 by this server's clock. Exact as a number until 2255.
local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Numbers above 10^14 would get an exponent.
local function digits(number)
  return string.format('%.0f', number)
end

local function add(fields, field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end

-- Adds to fields what is new in the observations from first on: pairs of member and data generation. The names of
-- a member increase, so an earlier one is never noted again. The first 8 digits name an admission, and the
-- last digit counts the names of one generation: a later name replaces the name only. Returns whether the server of
-- a member is another one than was known, or the first.
local function observe(fields, record, seen, first, now)
  local admitted = false
  for at = first, #seen, 2 do
    local field, generation = 'seen:' .. seen[at], seen[at + 1]
    local known = redis.call('HGET', record, field)
    local noted
    if not known or string.sub(known, 1, 15) < string.sub(generation, 1, 15) then
      noted = generation .. ' ' .. digits(now) .. ' ' .. (known and 1 or 0)
      admitted = admitted or not known or string.sub(known, 1, 8) < string.sub(generation, 1, 8)
    elseif string.sub(known, 1, 15) == string.sub(generation, 1, 15) and string.sub(known, 1, 16) < generation then
      noted = generation .. string.sub(known, 17)
    end
    if noted then
      add(fields, field, noted)
    end
  end
  return admitted
end
