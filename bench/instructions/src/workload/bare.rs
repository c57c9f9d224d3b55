use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Script, ScriptInvocation};

const FREE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then \
                    return redis.call('DEL', KEYS[1]) end return 0";

/// Takes keys and deletes them as any lock does, by the `redis` crate and with nothing around it,
/// `width` at a time, each on all servers at once.
pub(super) async fn run(urls: &[String], width: usize, cycles: usize) -> Result<(), String> {
    let mut connections = Vec::new();
    for url in urls {
        let client = redis::Client::open(url.as_str()).map_err(text)?;
        let connection = client.get_multiplexed_async_connection().await;
        connections.push(connection.map_err(text)?);
    }
    let tasks: Vec<_> = (0..width)
        .map(|at| tokio::spawn(go_round(connections.clone(), at, cycles / width)))
        .collect();
    for task in tasks {
        task.await.map_err(|error| error.to_string())??;
    }
    Ok(())
}

async fn go_round(
    mut connections: Vec<MultiplexedConnection>,
    at: usize,
    cycles: usize,
) -> Result<(), String> {
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

async fn take(connection: &mut MultiplexedConnection, set: &Cmd) -> Result<(), String> {
    let taken: Option<String> = set.query_async(connection).await.map_err(text)?;
    taken.map(drop).ok_or_else(|| "the key was there".into())
}

async fn give_back(
    connection: &mut MultiplexedConnection,
    free: &ScriptInvocation<'_>,
) -> Result<(), String> {
    match free.invoke_async(connection).await.map_err(text)? {
        1 => Ok(()),
        freed => Err(format!("{freed} keys were deleted")),
    }
}

fn text(error: RedisError) -> String {
    error.to_string()
}
