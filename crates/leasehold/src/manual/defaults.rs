//! The reason for every default.
//!
//! | setting | default | why |
//! |---|---|---|
//! | TTL | 30 s | how long a dead holder blocks the others; three renewals may fail before it matters |
//! | shortest TTL | 100 ms; on a quorum ten times the clock tolerance | with a shorter one, the margin uses up the lease |
//! | longest TTL | 24 h; 60 s on a quorum | long TTLs are for handles: a guard learns of a broken lease at its next renewal; a member of a quorum has no vote for the longest TTL after it lost its data |
//! | renewal | every third of the TTL; the first after a tenth to a third, at random | leases acquired together are renewed at different times |
//! | renewal in doubt | every thirtieth of the TTL, at most 1 s | several tries before the deadline |
//! | margin | a tenth of the TTL and 2 ms; on a quorum twice the clock tolerance more | clocks that run at different rates, and members that disagree |
//! | clock tolerance | 250 ms | NTP stays within it without special care; part of the quorum configuration |
//! | one attempt | at most a third of the TTL, at most 2 s | after a slower one, too little of the lease would be left |
//! | one member of several | a twentieth of the TTL, 50 ms to 1 s | the client waits for a dead minority only if its votes decide |
//! | reservation for the next waiter | 1 s | a notified waiter asks well within it; the turn of a paused one ends with its presence, after 2.5 s |
//! | heartbeat while waiting | every second, about the client's oldest waiter of each lock | it repairs lost notifications and notices expired leases |
//! | gap for clients that poll | 150 ms, every 5 s, or every second after such a client was seen | they poll about every 100 ms |
//! | wait | no limit | a lock that gives up by itself surprises; the caller knows how long is too long |
//! | a store that has never answered this client, while waiting without a limit | one TTL | its address may be wrong; the client waits for the end of later outages |
//! | lock delay | none | it costs time whenever a holder dies; a resource that checks fences needs none |
//! | pause between reads of an [observer](crate::election::Election::poll_interval) | one second, give or take a tenth | soon enough for people and for most programs; a thousand observers send two thousand reads a second |
//! | announcement of a leader | written again every minute, kept for a year | members that lost their data soon receive it again; nothing depends on its end, so it need not end |
//! | hold | no limit | the work decides; `max_hold` bounds it |
//! | dropping a client | never waits; [`Client::close`](crate::Client::close) does | a drop inside async code must not block its thread |
