-- Extends valid leases to their whole TTL. Takes no free lock. An exclusive lease that is renewed as shared
-- becomes shared. A permit moves to the wanted one if that is free.
--
-- KEYS  1 presence; then five for each lease: lock key, fence, queue, readers, slots
-- ARGV  three for each lease: entry, ttl in ms, permit or ''
-- Answer  for each lease: 1 renewed, 0 the lock is free, -1 another request holds it, or the owner holds
--         another permit, -2 the lease was broken; or the text of an error
-- Source  docs/wire.md, "Renew"

local function renew(number)
  open(number)
  local entry, ttl, slot = ARGV[3 * number - 2], tonumber(ARGV[3 * number - 1]), ARGV[3 * number]
  local owner, mark = split(entry)
  if tonumber(call('ZSCORE', fence, owner) or 0) < 0 then
    return -2
  end
  local member, changed = holds(entry), false
  if not member and mark == '/s' and value == owner then
    -- Never shorter than the exclusive lease.
    ttl, member, changed = math.max(ttl, call('PTTL', lock)), owner, true
  elseif not member then
    return (not value or value == NEXT) and 0 or value == BROKEN .. owner and -2 or -1
  elseif slot ~= '' and slot ~= member and tonumber(call('ZSCORE', readers, slot) or now + 1) <= now then
    leave(owner, mark, member)
    member, changed = slot, true
  end
  if mark ~= '' then
    share(entry, member, ttl)
  elseif call('PTTL', lock) < ttl then
    call('PEXPIRE', lock, ttl)
  end
  call('PEXPIRE', fence, REST_MS)
  if changed then
    hand_over()
  end
  return (slot == '' or slot == member) and 1 or -1
end

return each(renew)
