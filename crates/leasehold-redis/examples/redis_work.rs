//! Prints how long a server of its own works for taking a free lock and giving it back, command by
//! command, in microseconds: by its own count (INFO commandstats), so whatever the client costs.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use leasehold::ambient::{Ambient, SystemEntropy};
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::{
    CardEdit, Claim, ClientInfo, Error, Key, Life, Member as _, MemberId, MemberSet, Owner,
    Store as _,
};
use leasehold_redis::RedisMember;
use leasehold_testkit::servers::{RedisServer, Reply};

const ROUNDS: u64 = 200;
const LOCKS: u64 = 100;

fn main() -> Result<(), Error> {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(run(&server))
}

#[expect(clippy::print_stdout, reason = "it is there to print")]
async fn run(server: &RedisServer) -> Result<(), Error> {
    let member = RedisMember::new(server.url())?;
    write_card(&member).await?;
    let info = ClientInfo::of_this_process(&Ambient::default(), Some("work".into()));
    let info = Arc::new(info);
    let (mut work, mut total) = (BTreeMap::new(), 0.0);
    // The first round creates the records and loads the script.
    for round in 0..=ROUNDS {
        let claims: Vec<Claim> = (0..LOCKS).map(|lock| claim(lock, &info)).collect();
        server.command(&["CONFIG", "RESETSTAT"]);
        for claim in &claims {
            member.acquire(claim).await?;
        }
        let mut taken = spent(server);
        server.command(&["CONFIG", "RESETSTAT"]);
        for claim in &claims {
            member.release(claim).await?;
        }
        // What the script does is within its own time.
        let mut given_back = spent(server);
        given_back.retain(|command, _| command == "evalsha");
        taken.append(&mut given_back);
        for (command, micros) in taken.into_iter().filter(|_| round > 0) {
            *work.entry(command).or_insert(0.0) += micros / (ROUNDS * LOCKS) as f64;
        }
    }
    for (command, micros) in work {
        total += micros;
        println!("{command:10} {micros:.2}");
    }
    println!("{:10} {total:.2}", "together");
    Ok(())
}

async fn write_card(member: &RedisMember) -> Result<(), Error> {
    let ids = (1..=5).map(|n| MemberId::new(format!("10.0.0.{n}:6379")));
    let life = Life::random(&SystemEntropy);
    let edit = CardEdit {
        expected: None,
        set: MemberSet::new(
            ids.clone(),
            Duration::from_secs(60),
            Duration::from_millis(250),
        ),
        generation: 1,
        run: member.presence().await?.run,
        durable: false,
        life,
        age: Some(Duration::ZERO),
        seen: ids.map(|id| (id, life)).collect(),
    };
    member.write_card(&edit).await.map(drop)
}

fn claim(lock: u64, info: &Arc<ClientInfo>) -> Claim {
    let wall = SystemClock.wall();
    Claim::new(
        Key::new(format!("work/{lock}")).expect("a valid name"),
        Owner::at(info.id, wall, &SystemEntropy),
        Duration::from_secs(30),
        wall,
        Arc::clone(info),
    )
}

/// The microseconds that each command took since the statistics were reset.
fn spent(server: &RedisServer) -> BTreeMap<String, f64> {
    let Reply::Bulk(stats) = server.command(&["INFO", "commandstats"]) else {
        panic!("INFO was not answered with text")
    };
    let spent = stats.lines().filter_map(|line| {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let (_, micros) = rest.split_once("usec=")?;
        let micros = micros.split(',').next()?.parse().ok()?;
        Some((command.to_owned(), micros))
    });
    spent
        .filter(|(command, _)| !command.starts_with("config"))
        .collect()
}
