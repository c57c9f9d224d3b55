-- Takes the lock if it is the request's turn. Otherwise the waiter enters the queue if it has a ticket.
--
-- KEYS  1 presence  2 lock key  3 fence  4 queue  5 readers  6 slots
-- ARGV  1 entry  2 ttl in ms  3 proposal for the fence  4 ticket, '' for none, or 'barging'
--       5 the preferred permit, or ''
-- Answer  {1, fence, permit or -1, cannot notify} or {0, value, left, place, ask again, cannot notify}
-- Source  docs/wire.md, "Acquire"

return acquire(ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5])
