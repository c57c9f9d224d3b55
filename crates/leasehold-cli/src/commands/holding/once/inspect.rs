//! `once --show`, `--list` and `--forget`: requests as an operator sees them.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use leasehold::look::Pattern;
use leasehold::once::{OnceProgress, OnceResult};
use leasehold::{Client, ErrorKind, Key};
use serde_json::{Value, json};

use crate::commands::holding::once::args::OnceArgs;
use crate::commands::holding::once::stored::Stored;
use crate::config;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::time_text::{millis, whole_seconds};
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::store::OpenStore;

/// Shows the request. The exit code says whether there is a result.
pub(super) fn show(args: &OnceArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_on_terminal(output);
    let client = store.client();
    let once = client.once(&args.name).retention(args.retain);
    let progress = runtime()?.block_on(once.progress())?;
    let printed = match args.json {
        true => output::print_json(&object(&args.name, &client.to_string(), &progress)),
        false => output::print(&format!("{}: {}\n", args.name, text(&progress))),
    };
    printed?;
    Ok(match progress {
        OnceProgress::Done(_) => ExitCode::SUCCESS,
        _ => ExitCode::FREE,
    })
}

/// How many requests are read at once. A result has up to a megabyte.
const READ_AT_ONCE: usize = 8;

/// Shows the requests whose keys match.
pub(super) fn list(args: &OnceArgs, output: &Output) -> Result<ExitCode, Failure> {
    let pattern = Pattern::new(&args.name)?;
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_on_terminal(output);
    let client = store.client();
    let (name, limit) = (client.to_string(), args.limit);
    let runtime = runtime()?;
    let mut keys = runtime.block_on(client.list_records(&pattern, limit + 1))?;
    let more = keys.len() > limit;
    keys.truncate(limit);
    if args.json {
        let as_json = |key: &Key, progress: &OnceProgress| object(key.as_str(), &name, progress);
        let requests = runtime.block_on(requests(args, &client, &keys, as_json))?;
        output::print_json(&json!({
            "store": name,
            "pattern": args.name,
            "more": more,
            "requests": requests,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let line = |key: &Key, progress: &OnceProgress| format!("{key}: {}\n", text(progress));
    let lines = runtime.block_on(requests(args, &client, &keys, line))?;
    let mut lines = lines.concat();
    if lines.is_empty() {
        lines += &format!("no request whose key matches {:?}\n", args.name);
    }
    if more {
        lines += &format!("more records match; --limit {limit} leaves them out\n");
    }
    output::print(&lines)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns what `show` makes of each request among these records.
async fn requests<T>(
    args: &OnceArgs,
    client: &Client,
    keys: &[Key],
    show: impl Fn(&Key, &OnceProgress) -> T,
) -> Result<Vec<T>, Failure> {
    let read = async |key: &Key| {
        let once = client.once(key.as_str()).retention(args.retain);
        match once.progress().await {
            Ok(OnceProgress::Vacant) => Ok(None),
            Ok(progress) => Ok(Some(show(key, &progress))),
            // The record of an election, or of another program.
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
            Err(error) => Err(Failure::from(error)),
        }
    };
    let shown = stream::iter(keys).map(read).buffered(READ_AT_ONCE);
    let shown: Vec<Option<T>> = shown.try_collect().await?;
    Ok(shown.into_iter().flatten().collect())
}

/// Forgets the request, so that the next call runs its command.
pub(super) fn forget(args: &OnceArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let lock_options = args.lock_options(choice.defaults())?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.holder(&lock_options);
    let once = client.once(&args.name).retention(args.retain);
    let forgotten = runtime()?.block_on(lock_options.of_once(once).forget());
    let forgotten = forgotten.map_err(|error| match error.kind() {
        ErrorKind::Busy => Failure::busy(ExitCode::of(args.busy_code), error.to_string()),
        _ => error.into(),
    })?;
    let printed = match args.json {
        true => output::print_json(&json!({
            "key": args.name,
            "store": client.to_string(),
            "forgotten": forgotten,
        })),
        false if forgotten => output::print(&format!("{}: forgotten\n", args.name)),
        false => output::print(&format!("{}: no request\n", args.name)),
    };
    printed?;
    Ok(match forgotten {
        true => ExitCode::SUCCESS,
        false => ExitCode::FREE,
    })
}

fn text(progress: &OnceProgress) -> String {
    match progress {
        OnceProgress::Begun => "begun, without a result; the next call runs it".into(),
        OnceProgress::Done(result) => {
            let kept = whole_seconds(result.remaining);
            let what = match Stored::decode(&result.bytes) {
                Ok(stored) => format!(
                    "exit {}, {} bytes on stdout, {} on stderr",
                    stored.exit_code,
                    stored.stdout.bytes.len(),
                    stored.stderr.bytes.len()
                ),
                Err(_) => format!("{} bytes of another program", result.bytes.len()),
            };
            format!("done: {what}; kept for {kept}, fence {}", result.fence)
        }
        _ => "no request".into(),
    }
}

fn object(key: &str, store: &str, progress: &OnceProgress) -> Value {
    let (state, result): (_, Option<&OnceResult>) = match progress {
        OnceProgress::Begun => ("begun", None),
        OnceProgress::Done(result) => ("done", Some(result)),
        _ => ("vacant", None),
    };
    let stored = result.and_then(|result| Stored::decode(&result.bytes).ok());
    let stored = stored.as_ref();
    json!({
        "key": key,
        "store": store,
        "state": state,
        "fence": result.map(|result| result.fence.get()),
        "exit_code": stored.map(|stored| stored.exit_code),
        "stdout": stored.map(|it| json!({"bytes": it.stdout.bytes.len(), "cut": it.stdout.is_cut})),
        "stderr": stored.map(|it| json!({"bytes": it.stderr.bytes.len(), "cut": it.stderr.is_cut})),
        "kept_for_ms": result.map(|result| millis(result.remaining)),
    })
}
