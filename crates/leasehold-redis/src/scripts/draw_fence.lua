-- Draws a fence for a lease that was taken without one.
--
-- KEYS  1 presence  2 lock key  3 fence  4 queue  5 readers  6 slots
-- ARGV  1 entry  2 proposal
-- Answer  the fence
-- Source  docs/wire.md, "Fences"

open(1)
return draw(ARGV[1], ARGV[2])
