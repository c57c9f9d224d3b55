-- Gives a script the globals that it has in Redis, including KEYS and ARGV. ARGS: dispatch, which runs a
-- command and returns its reply and whether it failed; and sha1hex.

local dispatch, sha1hex = ...
local error, select, type, tostring, raw_pcall, raw_xpcall = error, select, type, tostring, pcall, xpcall
local trim = function(text) return (string.gsub(text, '[\r\n]+$', '')) end

local function error_of(text)
  local code, message = string.match(text, '^%-(%S+) (.*)$')
  if code then
    return {err = code .. ' ' .. trim(message)}
  end
  return {err = 'ERR ' .. trim((string.gsub(text, '^%-', '')))}
end

redis = {
  LOG_DEBUG = 0,
  LOG_VERBOSE = 1,
  LOG_NOTICE = 2,
  LOG_WARNING = 3,
  sha1hex = sha1hex,
}

function redis.call(...)
  local reply, failed = dispatch(...)
  if failed then
    error(reply)
  end
  return reply
end

function redis.pcall(...)
  return (dispatch(...))
end

function redis.error_reply(text)
  if type(text) ~= 'string' then
    return error_of('wrong number or type of arguments')
  end
  return error_of(string.sub(text, 1, 1) == '-' and text or '-' .. text)
end

function redis.status_reply(text)
  if type(text) ~= 'string' then
    return error_of('wrong number or type of arguments')
  end
  return {ok = text}
end

function redis.log() end

-- Since Redis 7.0, a caught error of a command is its text.
local function caught(done, problem, ...)
  if not done and type(problem) == 'table' and type(problem.err) == 'string' then
    problem = problem.err
  end
  return done, problem, ...
end

function pcall(...)
  return caught(raw_pcall(...))
end

for _, name in ipairs({
  'collectgarbage', 'dofile', 'gcinfo', 'getfenv', 'loadfile', 'module', 'newproxy', 'print', 'require',
  'setfenv',
}) do
  _G[name] = nil
end
-- Redis' own generator is not implemented.
math.random, math.randomseed = nil, nil

KEYS, ARGV = {}, {}
setmetatable(_G, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
  __newindex = function()
    error('Attempt to modify a readonly table', 2)
  end,
})

-- Runs a script. Returns its result, or nil and the text of its error.
return function(script, keys, argv)
  KEYS, ARGV = keys, argv
  local done, result = raw_pcall(script)
  if done then
    return result
  end
  if type(result) == 'table' then
    return nil, type(result.err) == 'string' and result.err or 'ERR unknown error'
  end
  return nil, 'ERR ' .. tostring(result)
end
