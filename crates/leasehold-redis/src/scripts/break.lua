-- Breaks the exclusive lease of an owner: from now on no client renews or restores it. The lock stays closed
-- until the lease would have ended, or is handed over at once.
--
-- KEYS  1 presence  2 lock key  3 fence  4 queue  5 readers  6 slots  7 record of the break
-- ARGV  1 owner  2 fence of its lease  3 '1' to hand over at once, or ''  4 how long the record is kept in
--       ms; then its fields and values
-- Answer  {1 the lease was valid or 0, for how many ms the lock stays closed or -1}
-- Source  docs/wire.md, "Break"

local REMEMBERED_MAX = 16

open(1)
local owner, record = ARGV[1], KEYS[7]
-- First: no renewal takes effect after this. Broken owners have scores below 0, the latest first.
call('ZADD', fence, '-' .. ARGV[2], owner)
call('PEXPIRE', fence, REST_MS)
call('ZREM', fence, call('ZRANGEBYSCORE', fence, '-inf', '(0', 'LIMIT', REMEMBERED_MAX, 1)[1] or '')
if value ~= owner and value ~= BROKEN .. owner then
  return {0, -1}
end
call('DEL', record)
call('HSET', record, unpack(ARGV, 5))
call('PEXPIRE', record, ARGV[4])
if ARGV[3] == '' then
  call('SET', lock, BROKEN .. owner, 'KEEPTTL')
  return {1, call('PTTL', lock)}
end
call('DEL', lock)
value = false
hand_over()
keep_for_head()
return {1, -1}
