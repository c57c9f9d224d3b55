//! A reason for every default.
//!
//! | setting | default | why |
//! |---|---|---|
//! | TTL | 30 s | how long a dead holder blocks the others; three renewals may fail before it matters |
//! | shortest TTL | 100 ms; on a quorum ten times the clock tolerance | below, the margin eats the lease |
//! | longest TTL | 60 s | leases are renewed, so a longer one only makes a crash cost more |
//! | first renewal | a third of the TTL, up to a thirtieth earlier | leases taken together spread out |
//! | renewal in doubt | every thirtieth of the TTL, at most 1 s | several tries before the deadline |
//! | margin | a tenth of the TTL and 2 ms; on a quorum a tenth and twice the clock tolerance | clocks that run at different rates, and members that disagree |
//! | clock tolerance | 250 ms | what NTP keeps without care; part of the set |
//! | one attempt | at most a third of the TTL, at most 2 s | later, too little of the lease is left |
//! | one member of several | a twentieth of the TTL, 50 ms to 1 s | a dead minority is waited for only when it decides |
//! | wait | no limit | a lock that gives up by itself surprises; the caller knows how long is too long |
//! | a store that does not answer, while waiting without a limit | one TTL | long enough for a restart, short enough to be told |
//! | hold | no limit | the work decides; `max_hold` bounds it |
//! | dropping a client | waits 500 ms for releases | else every short program would leave its locks to their TTL |
