use std::io;

use leasehold::{MemberId, MemberSet, Pattern};
use leasehold_redis::{RedisMember, RedisStore};
use serde_json::json;

use crate::args::{MembersArgs, MembersChange};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text::millis;
use crate::message::Message;
use crate::output::{self, Output};
use crate::quorum_shortfall::whole_seconds;
use crate::set::readmit::readmit;
use crate::set::{Servers, wait_after_change};
use crate::status::runtime;

/// Changes a quorum by one server, and prints what to do next.
pub(super) fn change(
    args: &MembersArgs,
    lock_options: &MembersChange,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let servers = Servers::choose_set(&args.store)?;
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
    output.say(&Message::Warning(&format!(
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

/// Which of the servers `member` is: an id or an address.
pub(super) fn place_of(
    servers: &Servers,
    member: &str,
    quorum: &RedisStore,
) -> Result<usize, Failure> {
    let id = if member.contains("://") {
        RedisMember::new(member)?.id().to_string()
    } else {
        member.to_owned()
    };
    let ids: Vec<_> = quorum.member_ids().collect();
    let is_meant = |(url, it): (&String, &&MemberId)| url == member || it.as_str() == id;
    let place = servers.urls().iter().zip(&ids).position(is_meant);
    place.ok_or_else(|| {
        let ids: Vec<_> = ids.iter().map(|it| it.as_str()).collect();
        Failure::usage(format!(
            "{:?} is not a member of the quorum; its members are {}",
            without_login(&id),
            ids.join(", ")
        ))
    })
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

/// The address with `***` in place of user and password.
fn without_login(url: &str) -> String {
    let (scheme, rest) = url
        .split_once("://")
        .map_or(("", url), |(s, rest)| (s, rest));
    let (place, query) = rest
        .split_once('?')
        .map_or((rest, None), |(p, q)| (p, Some(q)));
    let Some((_, place)) = place.rsplit_once('@') else {
        return url.to_owned();
    };
    let scheme = if scheme.is_empty() {
        String::new()
    } else {
        format!("{scheme}://")
    };
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("{scheme}***@{place}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_passwords() {
        for (url, shown) in [
            ("redis://a:7000/2?id=x", "redis://a:7000/2?id=x"),
            ("redis://u:se@cret@a?id=x", "redis://***@a?id=x"),
            ("unix://:secret@/run/a.sock", "unix://***@/run/a.sock"),
            ("u:secret@a:6379", "***@a:6379"),
        ] {
            assert_eq!(without_login(url), shown);
        }
    }
}
