-- Many locks in one call.
--
-- KEYS  1 presence; then five for each lock
-- Source  docs/wire.md, "Renew", "Heartbeat" and "Repair"

-- Runs f for each lock. If one of several locks has an error, the error is the answer for that lock.
local function each(f)
  local answers = {}
  for number = 1, (#KEYS - 1) / 5 do
    local done, answer = pcall(f, number)
    answers[number] = done and answer or type(answer) == 'table' and answer.err or tostring(answer)
  end
  return answers
end
