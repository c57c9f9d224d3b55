-- An attempt that fails does not undo the release, and must not hide it. Before Redis 7.0 its error is a
-- text.
local done, answer = pcall(attempt)
if not done and type(answer) ~= 'table' then
  answer = redis.error_reply(tostring(answer))
end
return {freed, answer}
