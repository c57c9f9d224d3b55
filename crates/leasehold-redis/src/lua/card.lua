-- What the scripts about the card have in common; it is put in front of each of them.
--
-- The card is a hash, one per database: what the member knows about its set, and of the other
-- members. It never expires (wire v1, `leasehold:card`).

-- Microseconds since 1970 by this server's clock. Below 2^53 until 2255, so exact as a number.
local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

-- Lua would write large numbers with an exponent.
local function digits(number)
  return string.format('%.0f', number)
end

-- Adds to fields what is to be noted of the members whose ids and lives stand in seen from first
-- on: for each life that the card does not know, since when it is known, and whether an earlier
-- one was. The last digit of a life counts the names of one span: a later name leaves the rest as
-- it is, an earlier one changes nothing.
local function add_sightings(fields, card, seen, first, now)
  for at = first, #seen, 2 do
    local field, life = 'seen:' .. seen[at], seen[at + 1]
    local known = redis.call('HGET', card, field)
    local noted
    if not known or string.sub(known, 1, 15) ~= string.sub(life, 1, 15) then
      noted = life .. ' ' .. digits(now) .. ' ' .. (known and 1 or 0)
    elseif string.sub(known, 1, 16) < life then
      noted = life .. string.sub(known, 17)
    end
    if noted then
      fields[#fields + 1] = field
      fields[#fields + 1] = noted
    end
  end
end
