use clap::Args;
use leasehold::Error;
use leasehold::clock::{Clock as _, SystemClock, WallTime};
use leasehold::look::{ListedLock, LockListing, Pattern};
use serde_json::{Value, json};

use crate::commands::looking::watch::WatchArgs;
use crate::config;
use crate::options::listing::{limit, pattern};
use crate::options::store_args::StoreArgs;
use crate::options::table_args::TableArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::holder_text;
use crate::output::locks::lock_table::{self, holding, is_agreed};
use crate::output::locks::minority;
use crate::output::message::Message;
use crate::output::table;
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::store::OpenStore;

/// The arguments of `ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Show at most N locks, in the order of names, 1 to 100000.
    #[arg(
        long,
        value_name = "N",
        value_parser = limit,
        allow_negative_numbers = true,
        default_value_t = 1000
    )]
    pub(crate) limit: usize,

    /// Print one JSON object on stdout.
    ///
    /// `version` is 1; later versions may add fields, but change none. `store`, `store_source` (where the
    /// store was configured, null if nowhere), `pattern`; `members`, the number of servers of the store;
    /// `unanswered`, the servers that did not answer, each with `id` and `reason`; `majority`, whether enough servers
    /// answered; `more`, whether --limit left out locks; `unreadable`, why locks could not be read, which are
    /// therefore not listed; `locks`, each with `lock`, `held` (whether
    /// a majority names one holder), `agreed` (whether all servers that answered name the same) and
    /// `holders`, as in `status`, each with `members`, the number of servers that name it.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    #[command(flatten)]
    pub(crate) watch: WatchArgs,

    /// The names: `*` matches any text, `?` one character.
    ///
    /// On Redis, a string that leasehold did not write is listed as held by a client of another library if
    /// the pattern or the prefix of the store begins with text. Otherwise it is listed only if a leasehold
    /// client has asked for that lock within 7 days.
    #[arg(value_name = "PATTERN", value_parser = pattern, default_value = "*")]
    pub(crate) pattern: Pattern,
}

/// Shows the held locks and their holders.
pub(crate) fn ls(args: &LsArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_on_terminal(output);
    let client = store.watcher();
    let mut code = ExitCode::SUCCESS;
    let mut unreadable = Vec::new();
    let showing = args.watch.of_a_list().show(async || {
        let listing = client.list_locks(&args.pattern, args.limit).await?;
        code = match listing.has_majority() {
            true => ExitCode::SUCCESS,
            false => ExitCode::UNREACHABLE,
        };
        unreadable.clone_from(&listing.unreadable);
        Ok(match args.json {
            true => {
                let mut object = object(&listing, &args.pattern, &client.to_string());
                object["store_source"] = store.source().into();
                output::json_line(&object)
            }
            false => lines(&listing, args, args.table.width(), SystemClock.wall()),
        })
    });
    runtime()?.block_on(showing)?;
    for error in &unreadable {
        let text = format!("{}; its lock is not listed", error.reason());
        output.print_message(&Message::Warning(&text));
    }
    Ok(code)
}

fn lines(listing: &LockListing, args: &LsArgs, width: Option<usize>, now: WallTime) -> String {
    let (pattern, limit) = (&args.pattern, args.limit);
    let mut lines = minority::header(listing).unwrap_or_default();
    if listing.locks.is_empty() {
        lines += &format!(
            "no lock is held whose name matches {pattern:?}\n",
            pattern = pattern.to_string()
        );
    } else {
        let rows = listing.locks.iter();
        let rows: Vec<_> = rows
            .flat_map(|lock| lock_table::rows(lock, listing, now))
            .collect();
        lines += &table::fitted(&lock_table::COLUMNS, &rows, width);
    }
    if listing.more {
        lines += &format!("more locks match; --limit {limit} leaves them out\n");
    }
    for failure in &listing.failures {
        lines += &format!("no answer: {failure}\n");
    }
    lines
}

fn object(listing: &LockListing, pattern: &Pattern, store: &str) -> Value {
    let lock = |lock: &ListedLock| {
        let holders = lock.holders.iter().map(|sight| {
            let mut holder = holder_text::json(&sight.holder);
            holder["members"] = sight.members.into();
            holder
        });
        json!({
            "lock": lock.key.as_str(),
            "held": holding(lock, listing).next().is_some(),
            "agreed": is_agreed(lock, listing),
            "holders": holders.collect::<Vec<_>>(),
        })
    };
    json!({
        "store": store,
        "pattern": pattern.to_string(),
        "members": listing.members,
        "unanswered": minority::unanswered(listing),
        "majority": listing.has_majority(),
        "more": listing.more,
        "unreadable": listing.unreadable.iter().map(Error::reason).collect::<Vec<_>>(),
        "locks": listing.locks.iter().map(lock).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::locks::lock_table::tests::list_locks;
    use clap::Parser;
    use leasehold::ErrorKind;
    use leasehold::member::{MemberFailure, MemberId};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: LsArgs,
    }

    #[test]
    fn json_says_whether_the_servers_agree() {
        let flags = |members: &[usize]| {
            let value = object(&list_locks(members), &Pattern::all(), "quorum");
            let lock = &value["locks"][0];
            (
                lock["held"].as_bool().unwrap(),
                lock["agreed"].as_bool().unwrap(),
            )
        };
        assert_eq!(flags(&[5]), (true, true));
        assert_eq!(flags(&[3, 2]), (true, false));
        assert_eq!(flags(&[2]), (false, false));
    }

    #[test]
    fn silent_members_are_named_and_do_not_disagree() {
        let mut listing = list_locks(&[3]);
        for name in ["m3", "m4"] {
            let error = Error::new(ErrorKind::Unreachable, "connection refused");
            let failure = MemberFailure::new(MemberId::new(name), error);
            listing.failures.push(failure);
        }
        let args = Line::parse_from(["ls"]).args;
        let text = lines(&listing, &args, None, WallTime::from_micros(0));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "LOCK    COMMAND");
        assert_eq!(lines[1], "deploy  a client of another library");
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[2].starts_with("no answer: m3"), "{text}");
        assert!(lines[3].starts_with("no answer: m4"), "{text}");
        let value = object(&listing, &Pattern::all(), "quorum");
        assert_eq!(value["locks"][0]["agreed"], true);
        assert_eq!(value["unanswered"][1]["id"], "m4");
    }
}
