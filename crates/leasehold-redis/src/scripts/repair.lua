-- Restores exclusive leases where their locks are free and not in a gap, and raises the counter to
-- their fences.
--
-- KEYS  1 presence; then five for each lease: lock key, fence, queue, readers, slots
-- ARGV  three for each lease: entry, ttl in ms, fence
-- Answer  for each lease: 1 restored, 0 the lock is not free or the lease was broken; or the text of an error
-- Source  docs/wire.md, "Repair"; proven in Leasehold's quorum model

return each(function(number)
  open(number)
  local owner, ttl, drawn = ARGV[3 * number - 2], ARGV[3 * number - 1], ARGV[3 * number]
  local is_broken = tonumber(call('ZSCORE', fence, owner) or 0) < 0
  if value or is_broken or in_gap() then
    return 0
  end
  -- First: a lease that a smaller fence could follow is not restored.
  call('ZADD', fence, 'GT', drawn, 'f')
  call('PEXPIRE', fence, REST_MS)
  note(owner, drawn)
  call('SET', lock, owner, 'PX', ttl)
  return 1
end)
