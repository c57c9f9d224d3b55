//! The action of each fault. Faults that make a member forget happen when it matters most: two other
//! members are out, so the holder has its lock from a bare majority. Then the two come back to the member
//! that forgot. If that member had a vote, the three would grant the lock again.

use std::time::Duration;

use leasehold::clock::{BootInstant, Clock, SystemClock};
use leasehold_testkit::faults::NetworkFault;
use leasehold_testkit::servers::{RedisBuilder, RedisServer, Reply, until};

use crate::cluster::{AFTER_A_STEP, AFTER_FORGETTING, Cluster, MEMBERS, pause};
use crate::set::TTL;
use crate::worker::LOCK;

/// How long a holder stays when a fault is planned for it. Without renewals its guard lasts three quarters
/// of a TTL.
const STAY: Duration = Duration::from_millis(1500);

/// The value of the lock key while the lock is free and the next waiter is on its way.
const NEXT: &str = "leasehold:next";

/// How long a fault lasts.
const A_WHILE: Duration = Duration::from_secs(1);

pub(crate) fn nothing(cluster: &mut Cluster) {
    pause(A_WHILE);
    cluster.await_grants(1);
}

pub(crate) fn kill_and_forget(cluster: &mut Cluster) {
    let (member, since) = forgets_under_a_bare_majority(cluster, RedisServer::restart);
    cluster.out_since(member, since, AFTER_FORGETTING);
    cluster.await_whole();
}

pub(crate) fn power_cut(cluster: &mut Cluster) {
    let [first, second, member] = cluster.some_members();
    let frozen = freeze_both(cluster, [first, second]);
    // Anything written from now on has not reached the disk when the power fails.
    let kept = appended_without_lock(&cluster.servers[member]);
    cluster.await_holder(STAY);
    let since = SystemClock.now();
    cluster.servers[member].restart_after_power_cut(kept);
    thaw_both(cluster, [first, second], frozen);
    cluster.await_leaving();
    cluster.out_since(member, since, AFTER_FORGETTING);
    cluster.await_whole();
}

pub(crate) fn kill_durable(cluster: &mut Cluster) {
    let (member, since) = forgets_under_a_bare_majority(cluster, RedisServer::restart);
    // The member remembers everything, and has a vote at once.
    cluster.out_since(member, since, Duration::ZERO);
    cluster.await_whole();
}

pub(crate) fn flush_all(cluster: &mut Cluster) {
    let (member, since) = forgets_under_a_bare_majority(cluster, |server| {
        server.command(&["FLUSHALL"]);
    });
    cluster.out_since(member, since, AFTER_FORGETTING);
    cluster.await_whole();
}

pub(crate) fn step_clock(cluster: &mut Cluster) {
    let span = TTL + Duration::from_secs(1);
    // Forward: the holder's lease ends there, and nowhere else.
    let (member, since) =
        forgets_under_a_bare_majority(cluster, |server| server.clock().forward(span));
    // Back: leases last too long there, until the clock is set right, which ends them early.
    cluster.servers[member].clock().back(2 * span);
    cluster.await_holder(A_WHILE);
    cluster.servers[member].clock().set_right();
    cluster.await_leaving();
    cluster.out_since(member, since, AFTER_A_STEP);
    cluster.await_whole();
}

pub(crate) fn durability_off(cluster: &mut Cluster) {
    let members: [usize; 3] = cluster.some_members();
    configure(
        &cluster.servers[members[2]],
        &["CONFIG", "SET", "appendonly", "no"],
    );
    cluster.await_durability_off(members[2]);
    // Its configuration file says durable, and its data is from before the switch.
    let (member, since) = forgets_under(cluster, members, RedisServer::restart);
    cluster.out_since(member, since, AFTER_FORGETTING);
    cluster.await_whole();
}

pub(crate) fn promoted_replica(cluster: &mut Cluster) {
    let members: [usize; 3] = cluster.some_members();
    let primary = &cluster.servers[members[2]];
    let replica = replicated_at_once(RedisServer::builder().durable());
    let replica = replica.replica_of(primary).start();
    until_replicated(&replica);
    configure(&replica, &["REPLICAOF", "NO", "ONE"]);
    // Waits until the leases in its data have ended.
    pause(TTL);
    let port = replica.port().to_string();
    let (member, since) = forgets_under(cluster, members, |server| {
        server.restart();
        configure(server, &["REPLICAOF", "127.0.0.1", &port]);
        until_replicated(server);
        configure(server, &["REPLICAOF", "NO", "ONE"]);
    });
    cluster.out_since(member, since, AFTER_FORGETTING);
    cluster.await_whole();
}

/// Makes servers send their data to a new replica immediately. By default they wait five seconds for others
/// to join.
pub(crate) fn replicated_at_once(servers: RedisBuilder) -> RedisBuilder {
    servers.directive("repl-diskless-sync-delay", "0")
}

fn until_replicated(replica: &RedisServer) {
    until("the replica has the data", || {
        let info = replica.command(&["INFO", "replication"]);
        matches!(info, Reply::Bulk(info) if info.contains("master_link_status:up"))
    });
}

fn configure(server: &RedisServer, words: &[&str]) {
    let answer = server.command(words);
    assert_eq!(answer, Reply::Status("OK".into()), "{words:?}");
}

pub(crate) fn freeze(cluster: &mut Cluster, count: usize) {
    let members: [usize; MEMBERS] = cluster.some_members();
    let since = SystemClock.now();
    for member in &members[..count] {
        cluster.servers[*member].freeze();
    }
    cluster.await_holder(A_WHILE);
    cluster.await_grants(1);
    for member in &members[..count] {
        cluster.servers[*member].thaw();
        cluster.out_since(*member, since, Duration::ZERO);
    }
    cluster.await_grants(5);
}

pub(crate) fn pause_holder(cluster: &mut Cluster) {
    let hold = cluster.await_holder(A_WHILE / 2);
    // The pause begins sometimes before the holder's last look at the guard, sometimes after it.
    pause(A_WHILE / 2 * cluster.below(10) as u32 / 10);
    cluster.workers[hold.worker].pause();
    cluster.await_grants(3);
    cluster.workers[hold.worker].resume();
    cluster.await_leaving();
    cluster.await_grants(5);
}

pub(crate) fn cut_connections(cluster: &mut Cluster) {
    for _ in 0..5 {
        let hold = cluster.await_holder(A_WHILE / 5);
        let members: [usize; 3] = cluster.some_members();
        for member in members {
            cluster.path(hold.worker, member).cut();
        }
        cluster.path(hold.worker + 1, members[0]).cut();
        cluster.await_leaving();
    }
    // The holder's site cannot reach any majority.
    let hold = cluster.await_holder(TTL);
    set_network_fault(cluster, hold.worker, NetworkFault::Refusing);
    cluster.await_leaving();
    cluster.await_grants(1);
    clear_up(cluster, hold.worker);
}

pub(crate) fn half_open(cluster: &mut Cluster) {
    let hold = cluster.await_holder(TTL);
    set_network_fault(cluster, hold.worker, NetworkFault::HalfOpen);
    cluster.await_leaving();
    cluster.await_grants(3);
    clear_up(cluster, hold.worker);
}

pub(crate) fn slow_answers(cluster: &mut Cluster) {
    // These delays exceed, in this order, the limit of a member, the limit of an attempt, and the lease.
    for delay in [TTL / 10, TTL / 2, TTL + TTL / 2] {
        let hold = cluster.await_holder(A_WHILE / 2);
        set_network_fault(cluster, hold.worker, NetworkFault::SlowAnswers(delay));
        cluster.await_leaving();
        cluster.await_grants(5);
        clear_up(cluster, hold.worker);
    }
}

/// Repairs the network, and waits until the site of `worker` comes back.
fn clear_up(cluster: &Cluster, worker: usize) {
    set_network_fault(cluster, worker, NetworkFault::None);
    cluster.await_grant_at_site_of(worker);
}

/// Returns how much the server has written at a moment when the lock is free there.
fn appended_without_lock(server: &RedisServer) -> u64 {
    let mut connection = server.connect();
    let mut kept = 0;
    until("nobody holds the lock for a moment", || {
        kept = server.appended();
        let value = connection.call(&["GET", LOCK]).expect("an answer");
        let held = matches!(value, Reply::Bulk(value) if value != NEXT);
        !held && kept == server.appended()
    });
    kept
}

/// Sets the fault between the site of `worker` and a majority of the members.
fn set_network_fault(cluster: &Cluster, worker: usize, fault: NetworkFault) {
    for member in 0..=MEMBERS / 2 {
        cluster.path(worker, member).set(fault);
    }
}

/// Makes one member `forget` while a holder has a bare majority, and then lets the others come back to it.
/// Returns the member that forgot, and when it did.
fn forgets_under_a_bare_majority(
    cluster: &mut Cluster,
    forget: impl FnOnce(&mut RedisServer),
) -> (usize, BootInstant) {
    let members = cluster.some_members();
    forgets_under(cluster, members, forget)
}

/// Does the same with the given members: two that are out meanwhile, and the member that forgets.
fn forgets_under(
    cluster: &mut Cluster,
    [first, second, member]: [usize; 3],
    forget: impl FnOnce(&mut RedisServer),
) -> (usize, BootInstant) {
    let frozen = freeze_both(cluster, [first, second]);
    cluster.await_holder(STAY);
    let since = SystemClock.now();
    forget(&mut cluster.servers[member]);
    thaw_both(cluster, [first, second], frozen);
    cluster.await_leaving();
    (member, since)
}

fn freeze_both(cluster: &Cluster, members: [usize; 2]) -> BootInstant {
    let since = SystemClock.now();
    for member in members {
        cluster.servers[member].freeze();
    }
    // The next holder will have asked after both were stopped.
    cluster.await_grants(2);
    since
}

fn thaw_both(cluster: &mut Cluster, members: [usize; 2], since: BootInstant) {
    for member in members {
        cluster.servers[member].thaw();
        cluster.out_since(member, since, Duration::ZERO);
    }
}
