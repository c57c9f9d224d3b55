-- The usual attempt at a contended lock: that of the first waiter, once it was notified. It comes before the definitions that other
-- attempts need.
--
-- Source  docs/wire.md, "Acquire"

open(1)
if value == NEXT and #ARGV[1] == 49 and call('ZRANGE', queue, 0, 0)[1] == ARGV[1] then
  local drawn = draw(ARGV[1], ARGV[3])
  call('ZREM', queue, ARGV[1])
  call('SET', lock, ARGV[1], 'PX', ARGV[2])
  return {1, drawn, -1, 0}
end
