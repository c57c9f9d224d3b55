-- Breaks the lease of an owner: from now on no client renews or restores it. It keeps others out until it would have ended,
-- or is over at once.
--
-- KEYS  1 presence  2 lock key  3 fence  4 queue  5 readers  6 slots  7 record of the break
-- ARGV  1 owner  2 fence of its lease, or ''  3 '1' to hand over at once, or ''  4 how long the record is kept in
--       ms; then its fields and values
-- Answer  {1 the lease was valid or 0, for how many ms the lock stays closed or -1}
-- Source  docs/wire.md, "Break"

local REMEMBERED_MAX = 16

open(1)
local owner, record = ARGV[1], KEYS[7]
local broken = BROKEN .. owner
local mark = admits() or ''
local number = ARGV[2] ~= '' and ARGV[2] or text(tonumber(call('ZSCORE', fence, 'f') or 1))
-- First: no renewal takes effect after this. Broken owners have scores below 0, the latest first.
call('ZADD', fence, '-' .. number, owner)
call('PEXPIRE', fence, REST_MS)
call('ZREM', fence, call('ZRANGEBYSCORE', fence, '-inf', '(0', 'LIMIT', REMEMBERED_MAX, 1)[1] or '')
local lease = lease_of(owner, mark)
local member = lease or lease_of(broken, mark)
if not member then
  return {0, -1}
end
call('DEL', record)
call('HSET', record, unpack(ARGV, 5))
call('PEXPIRE', record, ARGV[4])
if ARGV[3] == '' then
  if mark == '' then
    call('SET', lock, broken, 'KEEPTTL')
    return {1, call('PTTL', lock)}
  end
  -- A stored end is rounded up by 1 ms.
  local ends = call('ZSCORE', readers, lease and rename(owner, broken, mark, member) or member) - 1
  return {1, math.max(0, ends - now)}
end
if mark == '' then
  call('DEL', lock)
  value = false
else
  leave(lease and owner or broken, mark, member)
end
hand_over()
keep_for_head()
return {1, -1}
