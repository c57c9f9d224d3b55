//! The terms of this library, in alphabetical order.
//!
//! The words are those of etcd, ZooKeeper, Chubby, Redisson and the Redlock page where these agree.
//!
//! | term | meaning |
//! |---|---|
//! | acquire | Ask for a lock until it is granted or the wait ends. One call makes one or more *attempts*. |
//! | adopt | Take over a detached lease from its [`Handle`](crate::handle::Handle), as a new guard. |
//! | announcement | The record that a leader writes next to the lock of its election. |
//! | ballot | The count of the members' answers to one attempt. It decides who has a majority, and with which fence. |
//! | barging | Acquiring a free lock ahead of the queue ([`Lock::barging`](crate::Lock::barging)). |
//! | campaign | Wait until this candidate leads ([`Election::campaign`](crate::election::Election::campaign)). |
//! | client | One process's access to a store. It owns a background thread, the connections and a random identity. |
//! | contention | More than one owner wants the lock at the same time. |
//! | data generation | A random value that a member of a quorum draws when it may have lost data. |
//! | deadline | The instant from which a guard is invalid unless the lease is renewed before. It lies before the lease's end at the store. |
//! | detach | Turn a guard into a handle. The lease stays, and the client no longer renews it. |
//! | downgrade | Change an exclusive hold to shared mode without releasing the lock. |
//! | drift | The difference between the rates of two clocks. A deadline leaves room for it. |
//! | durable | Set up so that no restart loses data. A durable member keeps its vote through a restart. |
//! | effect | What a failed request may have done: nothing, or unknown. |
//! | epoch | The version of a member's record: its data generation and the number of the configuration. |
//! | exclusive | A mode: no other owner holds the lock. |
//! | fence | A number that each grant of a lock carries, greater than that of every earlier grant. Also called a fencing token. |
//! | force release | Take a lock from its holder ([`Client::break_lock`](crate::Client::break_lock)). The command is `leasehold break`. |
//! | foreign lock | A lock of another library. |
//! | gap | A moment in which a contended lock is left free for clients of other libraries, which poll. |
//! | grant | The store's answer that an attempt now holds the lock. |
//! | guard | A held lock. It says how long it can be trusted, and releases the lock when it is dropped. |
//! | handle | The text of a detached lease, with which another process can adopt it. It is a secret. |
//! | heartbeat | The message by which a client with waiters reports each second that it is alive. |
//! | holder | The owner that holds a lock, or the client of that owner. |
//! | incarnation | One run of a member together with its epoch. Answers of different incarnations may come from different data. |
//! | key | The name of a lock. |
//! | leader | The holder of an election's lock, once it has announced itself. |
//! | lease | A hold that ends by itself at the store unless it is renewed. |
//! | lock | A name that at most one owner holds exclusively, or several owners in shared mode. |
//! | lock delay | The time for which a lock stays unavailable after its holder ended uncleanly. |
//! | lost | The final state of a guard whose lease has ended, or may have. |
//! | majority | More than half of the members of a quorum. Two majorities have a member in common. |
//! | margin | How much sooner a guard ends than its lease does at the store. |
//! | member | One server of a quorum. |
//! | notification | The message by which a server tells a waiter to ask now. A lost one costs time and nothing else. |
//! | observer | A client that reads who leads, and does not campaign. |
//! | owner | The random identity of one round of a wait, and of the lease that it is granted. A store compares owners and nothing else. |
//! | payload | What a request of [`Once`](crate::once::Once) asks for. One name belongs to one payload. |
//! | permit | One of the places of a semaphore. |
//! | presence | A member's knowledge that a client is alive, kept by its heartbeat. |
//! | queue | The waiters of a lock in the order of their tickets. |
//! | quorum | A set of independent servers that decides by majority. |
//! | reader, writer | Owners in shared and in exclusive mode. |
//! | record | A small value next to a lock, which the store orders by fence. |
//! | reenter | Make another guard of the same hold within a process. The last of them to end frees the lock ([`Guard::reenter`](crate::Guard::reenter)). |
//! | release | End a lease before its time, so that the next waiter can have the lock. |
//! | renewal | The request that extends a lease. The client sends it each third of the TTL. |
//! | request | What one attempt asks of a store: key, owner, mode and TTL. It names the lease afterwards. |
//! | reservation | A free lock that is kept a moment for the head of the queue. |
//! | retention | How long a store keeps a record or a result. |
//! | semaphore | A lock with several permits. |
//! | session | What a server knows of one client's connection. A lease does not depend on it. |
//! | shared | A mode: other owners may hold the lock in shared mode too. |
//! | store | What keeps the leases: a directory, one server, a quorum, or the memory of a process. |
//! | tally | The count of the members' answers about a lease that exists, for a renewal or a release. |
//! | ticket | A place in the queue: the time at which the wait began, and its owner. |
//! | trust | The decision whether a member has a vote. A member that may have forgotten leases has none for the longest TTL and a second. |
//! | TTL | Time to live: how long a lease lasts from its grant or its last renewal. |
//! | wait | The time that a caller gives an acquisition, or its position in the queue. |
//! | waiter | An owner that waits for a lock. |
//! | watch | A stream of the changes of a leader ([`LeaderWatch`](crate::election::LeaderWatch)). |
