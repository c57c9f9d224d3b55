-- The usual release of a contended lock. It comes before the definitions that other releases need: on a server that is idle
-- between two hand-overs, those cost more than the release.
--
-- Source  docs/wire.md, "Release"

local GAP_EVERY_MS, GAP_EVERY_ONCE_SEEN_MS, SEEN_MS = 5000, 1000, 3600000

-- Returns when the last gap ended, and how long after that the next one is due.
local function last_gap()
  local noted = call('ZMSCORE', fence, 'gap', 'foreign')
  local is_seen = now - (noted[2] or 0) < SEEN_MS
  return noted[1] or 0, is_seen and GAP_EVERY_ONCE_SEEN_MS or GAP_EVERY_MS
end

local function is_gap_due(length)
  if length == '0' then
    return false
  end
  local ended, every = last_gap()
  return now - ended >= every
end

open(1)
if value == ARGV[1] and #value == 49 and ARGV[2] == '' and not ARGV[5] then
  local head = call('ZRANGE', queue, 0, 0)[1]
  local client = head and #head == 49 and string.sub(head, 1, 16)
  local ends = client and call('ZSCORE', present, client)
  if ends and tonumber(ends) > now and not is_gap_due(ARGV[4]) then
    local receivers = redis.pcall('PUBLISH', 'leasehold:inbox:' .. client, 'turn ' .. head .. ' ' .. lock)
    if type(receivers) == 'number' and receivers > 0 then
      call('SET', lock, NEXT, 'PX', 1000)
      return {1, 0}
    end
  end
end
