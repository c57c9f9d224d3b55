//! `once --show`, `--list` and `--forget`: requests as an operator sees them.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use leasehold::once::{OnceProgress, OnceResult};
use leasehold::store::Pattern;
use leasehold::{ErrorKind, Key};
use serde_json::{Value, json};

use crate::commands::once::args::OnceArgs;
use crate::commands::once::stored::Stored;
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
    let name = client.to_string();
    let requests = async {
        let mut keys = client.list_records(&pattern, args.limit + 1).await?;
        let more = keys.len() > args.limit;
        keys.truncate(args.limit);
        let read = async |key: &Key| {
            let once = client.once(key.as_str()).retention(args.retain);
            Ok::<_, Failure>(match once.progress().await {
                Ok(OnceProgress::Vacant) => None,
                Ok(progress) if args.json => Some(object(key.as_str(), &name, &progress)),
                Ok(progress) => Some(format!("{key}: {}\n", text(&progress)).into()),
                // The record of an election, or of another program.
                Err(error) if error.kind() == ErrorKind::Corrupt => None,
                Err(error) => return Err(error.into()),
            })
        };
        let shown = stream::iter(&keys).map(read).buffered(READ_AT_ONCE);
        let shown: Vec<Option<Value>> = shown.try_collect().await?;
        Ok::<_, Failure>((shown.into_iter().flatten(), more))
    };
    let (requests, more) = runtime()?.block_on(requests)?;
    if args.json {
        output::print_json(&json!({
            "store": name,
            "pattern": args.name,
            "more": more,
            "requests": requests.collect::<Vec<_>>(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines: String = requests
        .filter_map(|line| Some(line.as_str()?.to_owned()))
        .collect();
    if lines.is_empty() {
        lines += &format!("no request whose key matches {:?}\n", args.name);
    }
    if more {
        lines += &format!(
            "more records match; --limit {} leaves them out\n",
            args.limit
        );
    }
    output::print(&lines)?;
    Ok(ExitCode::SUCCESS)
}

/// Forgets the request, so that the next call runs its command.
pub(super) fn forget(args: &OnceArgs, output: &Output) -> Result<ExitCode, Failure> {
    let lock_options = args.lock_options()?;
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_notice(output);
    let client = store.holder(&lock_options);
    let once = client.once(&args.name).retention(args.retain);
    let forgotten = runtime()?.block_on(once.ttl(lock_options.ttl).forget());
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
