-- Writes the card where its mark is still the one that the writer has read.
--
-- KEYS  1 card
-- ARGV  1 the mark that is expected, empty for no card  2 mark  3 ids of the set, one per line
--       4 max_ttl in ms  5 clock_tolerance in ms  6 generation  7 life
--       8 age of the life in µs, empty to leave its beginning as it is  9 run  10 durable, 0 or 1
--       then two for each other member that was seen: id, life
-- Answer  1 written, 0 another mark stands
-- Source  Leasehold's trust rules over Redlock (wire v1, the card)

local card = KEYS[1]
local expected, generation, age = ARGV[1], ARGV[6], tonumber(ARGV[8])

if expected == '' then
  -- A damaged card without a mark is a card too.
  if redis.call('EXISTS', card) == 1 then
    return 0
  end
elseif redis.call('HGET', card, 'mark') ~= expected then
  return 0
end

local now = now_us()
local fields = {
  'mark', ARGV[2], 'ids', ARGV[3], 'max_ttl_ms', ARGV[4], 'clock_tolerance_ms', ARGV[5],
  'generation', generation, 'life', ARGV[7], 'run', ARGV[9], 'durable', ARGV[10],
}
local function add(field, value)
  fields[#fields + 1] = field
  fields[#fields + 1] = value
end
if redis.call('HGET', card, 'generation') ~= generation then
  add('changed', digits(now))
end
if age or expected == '' then
  add('since', digits(math.max(0, now - (age or 0))))
end
add_sightings(fields, card, ARGV, 11, now)
-- One command, so that nothing ever stands there in part.
redis.call('HSET', card, unpack(fields))
return 1
