-- Notes on the card the lives of other members that it does not know.
--
-- KEYS  1 card
-- ARGV  two for each member that was seen: id, life
-- Answer  how many lives were noted; 0 without a card
-- Source  Leasehold's trust rules over Redlock (wire v1, the card)

local card = KEYS[1]

if redis.call('EXISTS', card) == 0 then
  return 0
end
local fields = {}
add_sightings(fields, card, ARGV, 1, now_us())
if #fields > 0 then
  redis.call('HSET', card, unpack(fields))
end
return #fields / 2
