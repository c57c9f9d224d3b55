use clap::Args;
use leasehold::store::{ListedLock, LockListing, Pattern, Visibility};
use serde_json::{Value, json};

use crate::commands::watch::WatchArgs;
use crate::config;
use crate::options::store_args::StoreArgs;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::holder_text;
use crate::output::table;
use crate::output::time_text;
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
    /// `unanswered`, the servers that did not answer, each with `id` and `reason`; `more`, whether --limit left out locks; `locks`, each with `lock`, `held` (whether
    /// a majority names one holder), `agreed` (whether all servers that answered name the same) and
    /// `holders`, as in `status`, each with `members`, the number of servers that name it.
    #[arg(long)]
    pub(crate) json: bool,

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

fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=100_000) => Ok(number),
        _ => Err("the limit must be 1 to 100000".into()),
    }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::new(text).map_err(|error| error.reason().to_owned())
}

/// Shows the held locks and their holders.
pub(crate) fn ls(args: &LsArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose_store(&args.store, output)?;
    let store = OpenStore::open(&choice)?;
    store.print_on_terminal(output);
    let client = store.client();
    let showing = args.watch.show(async || {
        let listing = client.list_locks(&args.pattern, args.limit).await?;
        Ok(match args.json {
            true => {
                let mut object = object(&listing, &args.pattern, &client.to_string());
                object["store_source"] = store.source().into();
                output::json_line(&object)
            }
            false => lines(&listing, &args.pattern, args.limit),
        })
    });
    runtime()?.block_on(showing)?;
    Ok(ExitCode::SUCCESS)
}

fn lines(listing: &LockListing, pattern: &Pattern, limit: usize) -> String {
    let mut lines = String::new();
    if listing.locks.is_empty() {
        lines += &format!(
            "no lock is held whose name matches {pattern:?}\n",
            pattern = pattern.to_string()
        );
    } else {
        let mut table = vec![["LOCK", "SINCE", "FENCE", "EXPIRES IN", "HELD BY"].map(String::from)];
        table.extend(listing.locks.iter().flat_map(|lock| rows(lock, listing)));
        lines += &table::columns(&table);
    }
    if listing.more {
        lines += &format!("more locks match; --limit {limit} leaves them out\n");
    }
    for failure in &listing.failures {
        lines += &format!("no answer: {failure}\n");
    }
    lines
}

/// One row for each holder of a lock. If the servers disagree, the rows say how many name the holder.
fn rows(lock: &ListedLock, listing: &LockListing) -> Vec<[String; 5]> {
    let agreed = is_agreed(lock, listing);
    let held: Vec<&Visibility> = holding(lock, listing).collect();
    let shown = if held.is_empty() {
        &lock.holders.iter().collect()
    } else {
        &held
    };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let row = |sight: &&Visibility| {
        let holder = &sight.holder;
        let mut by = holder.to_string() + &holder_text::manner(holder.mode);
        if let Some(form) = holder.form {
            by += &format!(" (the key holds {form}, or is not a lock)");
        }
        if holder.broken {
            by += ", broken";
        }
        if !agreed {
            by += &format!(", on {} of {} servers", sight.members, listing.members);
        }
        if held.is_empty() {
            by += " (no majority)";
        }
        [
            lock.key.to_string(),
            or_dash(holder.since.map(time_text::timestamp)),
            or_dash(holder.fence.map(|fence| fence.to_string())),
            or_dash(holder.remaining.map(|it| time_text::expiry(it).to_string())),
            by,
        ]
    };
    let mut rows: Vec<_> = shown.iter().take(NAMED_MAX).map(row).collect();
    let mut note = |text: String| {
        let [name, rest @ ..] = [lock.key.as_str(), "-", "-", "-"].map(String::from);
        let [since, fence, expires] = rest;
        rows.push([name, since, fence, expires, text]);
    };
    if shown.len() > NAMED_MAX {
        note(format!("{} more", shown.len() - NAMED_MAX));
    }
    if let (false, others @ 1..) = (held.is_empty(), lock.holders.len() - held.len()) {
        note(format!("{others} more on a minority of servers"));
    }
    rows
}

/// At most this many holders of one lock are named.
const NAMED_MAX: usize = 3;

/// The holders that a majority of the servers names.
fn holding<'a>(
    lock: &'a ListedLock,
    listing: &LockListing,
) -> impl Iterator<Item = &'a Visibility> {
    let members = listing.members;
    lock.holders
        .iter()
        .filter(move |sight| sight.members > members / 2)
}

/// Whether all servers that answered name the same holders.
fn is_agreed(lock: &ListedLock, listing: &LockListing) -> bool {
    let answered = listing.members - listing.failures.len();
    let mut holders = lock.holders.iter();
    holders.all(|sight| sight.members == answered)
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
    let unanswered = listing
        .failures
        .iter()
        .map(|failure| json!({"id": failure.id.as_str(), "reason": failure.error.reason()}));
    json!({
        "store": store,
        "pattern": pattern.to_string(),
        "members": listing.members,
        "unanswered": unanswered.collect::<Vec<_>>(),
        "more": listing.more,
        "locks": listing.locks.iter().map(lock).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::store::Holder;
    use leasehold::store::{MemberFailure, MemberId};
    use leasehold::{Error, ErrorKind, Key, Mode};

    /// A lock on five servers, with the number of servers that name each holder.
    fn list_locks(members: &[usize]) -> LockListing {
        let holders = vec![Holder::unknown(Mode::Exclusive); members.len()];
        let mut lock = ListedLock::new(Key::new("deploy").unwrap(), holders);
        for (sight, members) in lock.holders.iter_mut().zip(members) {
            sight.members = *members;
        }
        let mut listing = LockListing::new(vec![lock], false);
        listing.members = 5;
        listing
    }

    fn holders(members: &[usize]) -> Vec<String> {
        let listing = list_locks(members);
        let rows = rows(&listing.locks[0], &listing).into_iter();
        rows.map(|[.., by]| by).collect()
    }

    #[test]
    fn disagreement_of_servers_is_in_the_rows() {
        let foreign = "a client of another library";
        assert_eq!(holders(&[5]), [foreign]);
        assert_eq!(holders(&[3]), [format!("{foreign}, on 3 of 5 servers")]);
        assert_eq!(
            holders(&[3, 2]),
            [
                format!("{foreign}, on 3 of 5 servers"),
                "1 more on a minority of servers".into()
            ]
        );
        assert_eq!(
            holders(&[2]),
            [format!("{foreign}, on 2 of 5 servers (no majority)")]
        );
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
        let text = lines(&listing, &Pattern::all(), 9);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "LOCK    SINCE  FENCE  EXPIRES IN  HELD BY");
        assert_eq!(
            lines[1],
            "deploy  -      -      -           a client of another library"
        );
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[2].starts_with("no answer: m3"), "{text}");
        assert!(lines[3].starts_with("no answer: m4"), "{text}");
        let value = object(&listing, &Pattern::all(), "quorum");
        assert_eq!(value["locks"][0]["agreed"], true);
        assert_eq!(value["unanswered"][1]["id"], "m4");
    }

    #[test]
    fn only_the_first_shared_holders_are_named() {
        let rows = holders(&[5; 128]);
        assert_eq!(rows.len(), 4);
        assert_eq!(rows[3], "125 more");
        assert_eq!(holders(&[5; 3]).len(), 3);
    }
}
