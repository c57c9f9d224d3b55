use std::io;

use leasehold::store::{MemberId, MemberSet, Pattern};
use serde_json::json;

use crate::commands::members::args::{MembersArgs, MembersChange};
use crate::commands::members::readmit::readmit;
use crate::commands::members::servers::{Servers, place_of, wait_after_change, without_login};
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::output::time_text::millis;
use crate::output::time_text::whole_seconds;
use crate::output::{self, Output};
use crate::runtime::runtime;

/// Changes a quorum by one server, and prints what to do next.
pub(super) fn change(
    args: &MembersArgs,
    lock_options: &MembersChange,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let servers = Servers::choose_quorum(&args.store)?;
    let old = servers.quorum()?;
    let urls = match lock_options {
        MembersChange::Add { url } => with(&servers, url)?,
        MembersChange::Remove { member } => {
            let mut urls = servers.urls().to_vec();
            urls.remove(place_of(&servers, member, &old)?);
            urls
        }
        MembersChange::Readmit { member } => return readmit(args, &servers, member, &old),
    };
    let new = servers.quorum_of(&urls)?;
    runtime()?.block_on(async {
        warn_holders(&servers, output).await;
        new.succeed(&old).await
    })?;
    print(args.json, new.set(), &urls).map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

/// Warns before the change, because it ends the commands of all clients that still use the old list.
async fn warn_holders(servers: &Servers, output: &Output) {
    // Only for the warning: the change itself reports a store that fails.
    let Ok(any) = Pattern::new("*") else { return };
    let Ok(listing) = servers.client().list_locks(&any, SHOWN_MAX).await else {
        return;
    };
    let names: Vec<_> = listing.locks.iter().map(|lock| lock.key.as_str()).collect();
    if names.is_empty() {
        return;
    }
    let more = if listing.more { " and more" } else { "" };
    output.print_message(&Message::Warning(&format!(
        "holders with the old list lose their locks, and `run` ends their commands: {}{more}",
        names.join(", ")
    )));
}

/// At most this many locks are named.
const SHOWN_MAX: usize = 10;

fn with(servers: &Servers, url: &str) -> Result<Vec<String>, Failure> {
    if url.contains(',') {
        return Err(Failure::usage(
            "one server can be added at a time; give one URL",
        ));
    }
    let mut urls = servers.urls().to_vec();
    urls.push(url.to_owned());
    Ok(urls)
}

fn print(json: bool, set: &MemberSet, urls: &[String]) -> io::Result<()> {
    let wait = wait_after_change(set);
    let urls: Vec<_> = urls.iter().map(|url| without_login(url)).collect();
    let ids: Vec<_> = set.ids.iter().map(MemberId::as_str).collect();
    if json {
        return output::print_json(&json!({
            "version": 1,
            "members": ids,
            "store": urls,
            "next_change_in_ms": millis(wait),
        }));
    }
    output::print(&format!(
        "the quorum is now {}\n\
         Configure all clients with the new list at once: --store {}\n\
         Clients with the old list are refused from now on. They lose the locks they hold.\n\
         The next change is possible in {}.\n",
        ids.join(", "),
        urls.join(","),
        whole_seconds(wait)
    ))
}
