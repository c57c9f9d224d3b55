-- Notes in the member record which data generations of its peers a client observed.
--
-- KEYS  1 member record
-- ARGV  two for each observed member: id, data generation
-- Answer  how many were new; 0 without a record
-- Source  docs/wire.md, "The member record"

local record = KEYS[1]
if redis.call('EXISTS', record) == 0 then
  return 0
end
local fields = {}
observe(fields, record, ARGV, 1, now_us())
if #fields > 0 then
  redis.call('HSET', record, unpack(fields))
end
return #fields / 2
