-- Raises the counter to the fence of a valid lease. If several requests hold the lock together, only the
-- request that raises the counter has the fence.
--
-- KEYS  1 presence  2 lock key  3 fence  4 queue  5 readers  6 slots
-- ARGV  1 entry  2 fence
-- Answer  1 confirmed, 0 the lease is not valid, {counter} another request may have the fence
-- Source  docs/wire.md, "Fences"; proven in Leasehold's quorum model

open(1)
local owner, mark = split(ARGV[1])
if not holds(ARGV[1]) then
  return 0
end
local raised = call('ZADD', fence, 'GT', 'CH', ARGV[2], 'f')
if mark == '' then
  note(owner, ARGV[2])
elseif raised == 0 then
  return {text(call('ZSCORE', fence, 'f'))}
end
call('PEXPIRE', fence, REST_MS)
return 1
