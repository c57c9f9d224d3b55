use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, Script, ScriptInvocation};

use super::FREE;
use crate::exit::Fallible;

/// Takes keys and deletes them as any lock does, by the `redis` crate and with nothing around it,
/// `width` at a time, each on all servers at once.
pub(super) async fn run(urls: &[String], width: usize, cycles: usize) -> Fallible {
    let mut connections = Vec::new();
    for url in urls {
        let client = redis::Client::open(url.as_str())?;
        let connection = client.get_multiplexed_async_connection().await;
        connections.push(connection?);
    }
    let tasks: Vec<_> = (0..width)
        .map(|at| tokio::spawn(go_round(connections.clone(), at, cycles / width)))
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn go_round(
    mut connections: Vec<MultiplexedConnection>,
    at: usize,
    cycles: usize,
) -> Fallible {
    let key = format!("free/{at}");
    let script = Script::new(FREE);
    for cycle in 0..cycles {
        let owner = format!("{at:016x}.{cycle:032x}");
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(&owner).arg("NX").arg("PX").arg(30_000);
        let mut free = script.key(&key);
        free.arg(&owner);
        if let [connection] = connections.as_mut_slice() {
            take(connection, &set).await?;
            give_back(connection, &free).await?;
        } else {
            try_join_all(connections.iter_mut().map(|it| take(it, &set))).await?;
            try_join_all(connections.iter_mut().map(|it| give_back(it, &free))).await?;
        }
    }
    Ok(())
}

async fn take(connection: &mut MultiplexedConnection, set: &Cmd) -> Fallible {
    let taken: Option<String> = set.query_async(connection).await?;
    Ok(taken.map(drop).ok_or("the key was there")?)
}

async fn give_back(
    connection: &mut MultiplexedConnection,
    free: &ScriptInvocation<'_>,
) -> Fallible {
    match free.invoke_async(connection).await? {
        1 => Ok(()),
        freed => Err(format!("{freed} keys were deleted").into()),
    }
}
