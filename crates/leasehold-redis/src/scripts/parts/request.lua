-- Taking a lock.
--
-- Source  docs/wire.md, "Acquire"

-- Returns the permit for a request with this many waiters before it: the preferred permit if it is free,
-- otherwise the permit that became free first.
local function choose(ahead, preferred)
  if string.sub(value or '', 1, #PERMITS) ~= PERMITS then
    return preferred ~= '' and preferred or ahead
  end
  local free = call('ZRANGEBYSCORE', readers, '-inf', text(now))
  for _, slot in ipairs(free) do
    if slot == preferred then
      return slot
    end
  end
  return free[ahead + 1]
end

-- Grants the lock if it is the request's turn, or if the request holds it already: {1, fence, permit, cannot notify}.
-- Otherwise returns a refusal. The ticket is '' for a request that does not wait, and 'barging' for a request
-- ahead of the queue.
local function acquire(entry, ttl, proposal, ticket, preferred)
  local owner, mark = split(entry)
  local was_free, member, head = not value, holds(entry), call('ZRANGE', queue, 0, 0)[1]
  if not member then
    local admitted, room = admits()
    local ahead, is_barging = (admitted == nil or admitted == mark and room > 0) and 0, ticket == 'barging'
    if ahead and head and head ~= entry and not is_barging then
      -- Without a ticket it comes after all waiters, for this step only.
      enqueue(entry, ticket == '' and '+inf' or ticket)
      ahead = hand_over(entry)
    end
    if not ahead or was_free and head and not is_barging and in_gap() then
      local other_count = #mark > 2 and admitted and #admitted > 2 and mark ~= admitted
      local is_vain = other_count or string.find(value or '', '^leasehold:type:')
      if is_vain or is_barging or ticket == '' then
        call('ZREM', queue, entry)
      else
        enqueue(entry, ticket)
      end
      return refusal(entry)
    end
    member = mark == '/s' and owner or mark ~= '' and choose(ahead, preferred)
  end
  local drawn = draw(entry, proposal)
  if head then
    call('ZREM', queue, entry)
  end
  if mark == '' then
    call('SET', lock, owner, 'PX', ttl)
    value = owner
  else
    share(entry, member, ttl)
    if was_free then
      -- No release notified the other waiters that may join.
      hand_over()
    end
  end
  return {1, drawn, #mark > 2 and tonumber(member) or -1, cannot_notify and 1 or 0}
end
