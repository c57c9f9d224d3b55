-- What the scripts that let somebody in together with others have in common; it stands behind
-- lease.lua.

-- Lets owner in at the instant now, whether others hold the lock together already or not. The sentinel
-- says how they hold it; slots are those of a lock with permits.
local function share(lock, readers, sentinel, joins, owner, ttl, now, slots)
  if joins then
    redis.call('ZREMRANGEBYSCORE', readers, '-inf', '(' .. digits(now))
  else
    -- Without the sentinel somebody may have held the lock alone since: leases of readers that are
    -- still written here are over, and must not come back to life with the new sentinel.
    redis.call('SET', lock, sentinel, 'PX', ttl)
    redis.call('DEL', readers)
  end
  -- GT: asking again never shortens a lease that was renewed meanwhile.
  redis.call('ZADD', readers, 'GT', digits(now + ttl), owner)
  align_sentinel(lock, readers, slots)
end

