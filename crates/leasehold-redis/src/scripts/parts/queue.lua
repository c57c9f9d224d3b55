-- The queue: entry → ticket. Only the queue decides which waiter is next.
--
-- Source  docs/wire.md, "The queue"

-- Returns which mark the lock admits, and how many more holders with it. nil: any mark, since the lock is
-- free. false: none.
local function admits()
  if not value or value == NEXT then
    return nil
  elseif value == SHARED then
    return '/s', math.huge
  end
  local count = string.match(value, '^' .. PERMITS .. '(%d+)$')
  if count then
    return '/p' .. count, call('ZCOUNT', readers, '-inf', text(now))
  end
  return false, 0
end

local function enqueue(entry, ticket)
  call('ZADD', queue, ticket, entry)
  call('PEXPIRE', queue, 10000)
end

-- Notifies a waiter. Returns whether its client listens. If the user of this call may not publish,
-- every waiter counts as alive.
local function notify(entry)
  local message = 'turn ' .. entry .. ' ' .. lock
  local receivers = redis.pcall('PUBLISH', 'leasehold:inbox:' .. string.sub(entry, 1, 16), message)
  cannot_notify = cannot_notify or type(receivers) == 'table'
  return cannot_notify or receivers > 0
end

-- Notifies the waiters whose turn it is, starting with the oldest, and drops dead ones. Returns how many
-- waiters come before mine if it is the turn of mine, too.
local function hand_over(mine)
  local mark, room = admits()
  local is_free, at = mark == nil, 0
  while true do
    local entry = call('ZRANGE', queue, at, at)[1]
    if not entry then
      return
    end
    local wanted = string.sub(entry, 50)
    if is_free and at == 0 then
      mark, room = wanted, wanted == '' and 1 or tonumber(string.sub(wanted, 3)) or math.huge
    end
    local turn = wanted == mark and at < room
    if entry == mine then
      return turn and at
    end
    local ends = tonumber(call('ZSCORE', present, string.sub(entry, 1, 16)) or 0)
    -- A waiter for another number of permits blocks no other. It learns the number when it asks.
    local differs = not is_free and mark and wanted ~= mark and #wanted > 2 and #mark > 2
    if ends <= now or (turn or differs) and not notify(entry) or differs then
      call('ZREM', queue, entry)
    elseif turn then
      notified_until = notified_until or ends
      at = at + 1
    else
      return
    end
  end
end

local function in_gap()
  gap = gap or tonumber(call('ZSCORE', fence, 'gap') or 0)
  return gap > now
end

-- Keeps a free lock for the head of the queue if it was notified.
local function keep_for_head()
  if value and value ~= NEXT then
    return
  elseif notified_until and not in_gap() then
    call('SET', lock, NEXT, 'PX', 1000)
  elseif value then
    call('DEL', lock)
  end
end
