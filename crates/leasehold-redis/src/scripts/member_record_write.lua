-- Writes the member record if its epoch is still the expected one.
--
-- KEYS  1 member record
-- ARGV  1 the expected epoch, '' for no record  2 epoch  3 ids of the members, one per line  4 max_ttl in ms
--       5 clock_tolerance in ms  6 generation  7 data generation  8 age of it in µs, '' to keep its beginning
--       9 run  10 durable, 0 or 1; then two for each observed member: id, data generation
-- Answer  1 written, 0 the record has another epoch
-- Source  docs/wire.md, "The member record"

local record = KEYS[1]
local expected, generation, age = ARGV[1], ARGV[6], tonumber(ARGV[8])

if expected == '' then
  -- A damaged record without an epoch still counts as a record.
  if redis.call('EXISTS', record) == 1 then
    return 0
  end
elseif redis.call('HGET', record, 'epoch') ~= expected then
  return 0
end

local now = now_us()
local fields = {
  'epoch', ARGV[2], 'ids', ARGV[3], 'max_ttl_ms', ARGV[4], 'clock_tolerance_ms', ARGV[5],
  'generation', generation, 'data_generation', ARGV[7], 'run', ARGV[9], 'durable', ARGV[10],
}
if redis.call('HGET', record, 'generation') ~= generation then
  add(fields, 'changed', digits(now))
end
if age or expected == '' then
  add(fields, 'since', digits(math.max(0, now - (age or 0))))
end
observe(fields, record, ARGV, 11, now)
-- One command, so that there is never part of a record.
redis.call('HSET', record, unpack(fields))
return 1
