-- The fence: a ZSET with the counter (`f`) and notes.
--
-- Source  docs/wire.md, "Fences"

-- Notes the fence of an exclusive lease unless it is the instant in the owner plus 1. Deletes older notes:
-- times in ms are below 10^14, and fences are above. The note of a broken lease stays.
local function note(owner, number)
  if tonumber(number) ~= tonumber(string.sub(owner, 34, 47), 16) + 1 then
    call('ZREMRANGEBYSCORE', fence, '100000000000000', '(' .. number)
    call('ZADD', fence, 'NX', number, owner)
  end
end

-- Draws the fence of a lease: max(counter + 1, proposal).
local function draw(entry, proposal)
  local owner, mark = split(entry)
  local drawn = proposal
  if call('ZADD', fence, 'GT', 'CH', proposal, 'f') == 0 then
    drawn = text(call('ZINCRBY', fence, 1, 'f'))
  end
  if mark == '' then
    note(owner, drawn)
  end
  call('PEXPIRE', fence, REST_MS)
  return drawn
end
