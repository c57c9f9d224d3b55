//! A reason for every default.
//!
//! | setting | default | why |
//! |---|---|---|
//! | TTL | 30 s | how long a dead holder blocks the others; three renewals may fail before it matters |
//! | shortest TTL | 100 ms; on a quorum ten times the clock tolerance | below, the margin eats the lease |
//! | longest TTL | 60 s | leases are renewed, so a longer one only makes a crash cost more |
//! | renewal | every third of the TTL; the first after a tenth to a third, at random | leases taken together are renewed one after the other |
//! | renewal in doubt | every thirtieth of the TTL, at most 1 s | several tries before the deadline |
//! | margin | a tenth of the TTL and 2 ms; on a quorum a tenth and twice the clock tolerance | clocks that run at different rates, and members that disagree |
//! | clock tolerance | 250 ms | what NTP keeps without care; part of the set |
//! | one attempt | at most a third of the TTL, at most 2 s | later, too little of the lease is left |
//! | one member of several | a twentieth of the TTL, 50 ms to 1 s | a dead minority is waited for only when it decides |
//! | turn | kept for 1 s | a waiter that hangs costs the others no more than that |
//! | asking while waiting | the first 16 every 1 to 2 s, others every 4 to 8 s | who waits is told; this is for messages that were lost |
//! | gap for clients that poll | 150 ms, every 5 s, or every second once one was seen | they ask about every 100 ms |
//! | wait | no limit | a lock that gives up by itself surprises; the caller knows how long is too long |
//! | a store that has never answered this client, while waiting without a limit | one TTL | its address may be wrong; later outages are waited out |
//! | lock delay | none | it costs whenever a holder dies; a resource that checks fences needs none |
//! | look of an [observer](crate::Election::look_every) | every second, give or take a tenth | soon enough for people and for most programs; a thousand observers are two thousand reads a second |
//! | announcement of a leader | written again every minute, kept for a year | members that lost their data have it again soon; nothing ends with it, so it need not end |
//! | hold | no limit | the work decides; `max_hold` bounds it |
//! | dropping a client | never waits; [`Client::close`](crate::Client::close) does | a drop inside async code must not block its thread |
