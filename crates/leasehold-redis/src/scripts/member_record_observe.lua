-- Notes in the member record which data generations of its peers a client observed. A new server under the id of
-- a peer changes the epoch, also the first: the record may have been lost after an earlier one.
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
local admitted = observe(fields, record, ARGV, 1, now_us())
local new = #fields / 2
local generation = tonumber(redis.call('HGET', record, 'generation'))
if admitted and generation and generation % ADMISSION > 0 then
  -- No client counts on an answer of this member any longer before it knows who was admitted.
  local next = digits(generation + ADMISSION)
  add(fields, 'generation', next)
  add(fields, 'epoch', redis.call('HGET', record, 'data_generation') .. '.' .. next)
end
if new > 0 then
  redis.call('HSET', record, unpack(fields))
end
return new
