//! Scripts for what commands alone do not show: conversions, errors and what a script may do.

/// Runs the command in `ARGV`.
pub(crate) const CALL: &str = "return redis.call(unpack(ARGV))";
/// Runs the command in `ARGV`, and returns what Lua gets.
pub(crate) const PCALL: &str = "
    local reply = redis.pcall(unpack(ARGV))
    if type(reply) ~= 'table' then return {type(reply), reply or 'false'} end
    local told = {type(reply), #reply, reply.ok or false}
    for _, item in ipairs(reply) do told[#told + 1] = type(item) told[#told + 1] = item end
    return told";
/// Runs the command in `ARGV`, and catches its error as Lua does.
pub(crate) const CAUGHT: &str = "
    local done, problem = pcall(redis.call, unpack(ARGV))
    return {tostring(done), type(problem)}";

/// Reads everything under its keys.
pub(crate) const INSPECT: &str = "
    local told = {}
    for _, key in ipairs(KEYS) do
        local kind, data = redis.call('TYPE', key).ok, false
        if kind == 'string' then data = redis.call('GET', key)
        elseif kind == 'hash' then data = redis.call('HGETALL', key)
        elseif kind == 'zset' then data = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
        elseif kind == 'list' then data = redis.call('LRANGE', key, 0, -1) end
        told[#told + 1] = {key, kind, redis.call('PTTL', key), data}
    end
    return told";

/// Each gets four keys and three arguments.
pub(crate) const OTHERS: [&str; 38] = [
    "return",
    "return nil",
    "return {1, 2.9, -2.9, 'text', true, false, {}, {3}, nil, 5}",
    "return {1e300, -1e300, 2^53}",
    "return {ok = 'FINE'}",
    "return {err = 'BAD thing'}",
    "return {{ok = 'FINE'}, {err = 'BAD thing'}, 7}",
    "return redis.error_reply('BAD thing')",
    "return redis.error_reply('-BAD thing')",
    "return redis.error_reply('bad')",
    "return redis.status_reply('FINE')",
    "return redis.sha1hex(ARGV[1])",
    "return #KEYS * 10 + #ARGV",
    "return {KEYS[1], KEYS[5], ARGV[1]}",
    "error('boom')",
    "error({err = 'BAD boom'})",
    "error(redis.error_reply('BAD boom'))",
    "return redis.call('GET')",
    "return redis.call('FROB', KEYS[1])",
    "return redis.call('SUBSCRIBE', 'c0')",
    "return redis.call('EVAL', 'return 1', 0)",
    "return redis.call()",
    "return redis.call('GET', {})",
    "return redis.pcall('GET', true)",
    "return redis.pcall('FROB').err",
    "return redis.pcall('ZADD', KEYS[1], 'x', 'y').err or 'none'",
    "new_global = 1",
    "return unknown_global",
    "return (",
    "local done, problem = pcall(error, {err = 'BAD'}) return {tostring(done), problem}",
    "local done, problem = pcall(error, 'boom', 0) return {tostring(done), problem}",
    "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], 1 / 3) return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], 1700000000000001) return redis.call('GET', KEYS[1])",
    "redis.call('SET', KEYS[1], ARGV[1]) error('after a write')",
    "return redis.call('PUBLISH', 'c0', ARGV[1]) + redis.call('PUBLISH', 'c1', ARGV[2])",
    "local time = redis.call('TIME') return time[1] == redis.call('TIME')[1] and #time",
    "return string.format('%.14g|%d|%5s', tonumber('1e3'), 7.0, tostring(1e15)) .. 10 / 4",
    "local keys = {} for name in pairs({a = 1, b = 2}) do keys[#keys + 1] = name end
     table.sort(keys) return {keys, select('#', unpack(ARGV)), string.rep('x', 3)}",
];
