-- Runs one command on a key if the fence is not smaller than the greatest fence shown for this key before.
-- Otherwise it does nothing. The first call with a greater fence shuts out smaller ones, even without a
-- command (`fence_off`).
--
-- KEYS  1 the key with the data, of any type  2 the record of its fence, in the same slot:
--       "leasehold:fenced:{" .. tag .. "}:" .. key, where tag is the key's own hash tag, or the key
-- ARGV  1 the fence, a whole number from 1 to 9007199254740991 in decimal
--       2 the command's name, if there is one: any command whose first argument is the key
--       3 and so on: the command's arguments behind the key
-- Answer  {1, what the command answered} if it was let in
--         {0, the greatest fence as text} if that is greater; nothing was changed
--         the error of the command, which then had no effect; the fence is remembered all the same
-- Source  "How to do distributed locking" (Kleppmann, 2016), fencing tokens; the layout is Leasehold's
--
-- The record outlives the data by 7 days. So neither a deletion nor an expiry lets a late holder in, and
-- the record does not stay forever.

local REST_MS = 7 * 24 * 60 * 60 * 1000
local FENCE_MAX = 9007199254740991 -- 2^53 - 1: numbers are doubles here

local data, record = KEYS[1], KEYS[2]
local fence = ARGV[1]

local function is_fence(text)
  return string.find(text, '^[1-9]%d*$') and #text <= 16 and tonumber(text) <= FENCE_MAX
end

if not data or not record then
  return redis.error_reply('ERR KEYS are two: the key, and the record of its fence')
end
if not fence or not is_fence(fence) then
  return redis.error_reply('ERR the fence is a whole number from 1 to 9007199254740991')
end
-- pcall: before Redis 7.0, an error that ends a script loses its code.
local greatest = redis.pcall('GET', record)
if type(greatest) == 'table' then
  return greatest
end
if greatest and not is_fence(greatest) then
  return redis.error_reply('BADRECORD the record of this key holds no fence: delete it')
end
if greatest and tonumber(fence) < tonumber(greatest) then
  return {0, greatest}
end

-- The fence is stored before the write, and stays stored if the write fails.
redis.call('SET', record, fence)
local answer = false
if ARGV[2] then
  answer = redis.pcall(ARGV[2], data, unpack(ARGV, 3))
end
local left = redis.call('PTTL', data)
if left ~= -1 then
  redis.call('PEXPIRE', record, string.format('%.0f', math.max(left, 0) + REST_MS))
end
if type(answer) == 'table' and answer.err then
  return answer
end
return {1, answer}
