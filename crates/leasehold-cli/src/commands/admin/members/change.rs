use leasehold::look::{LockListing, Pattern};
use leasehold::member::{MemberId, MemberSet};
use serde_json::{Value, json};

use crate::commands::admin::members::args::{ChangeCare, MembersArgs, MembersChange};
use crate::commands::admin::members::readmit::readmit;
use crate::commands::admin::members::replace::replace;
use crate::commands::admin::members::servers::{Servers, index_of, wait_after_change};
use crate::config;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::locks::holder_text;
use crate::output::locks::minority;
use crate::output::time_text::{millis, whole_seconds};
use crate::output::{self, Output};
use crate::runtime::runtime;
use crate::store::Quorum;
use crate::store::address_text::without_login;

/// Changes a quorum by one server, and prints what to do next.
pub(super) fn change(
    args: &MembersArgs,
    change: &MembersChange,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let servers = Servers::choose_quorum(&args.store, output)?;
    let old = servers.quorum();
    let (urls, care) = match change {
        MembersChange::Add { url, care } => (with(old, url)?, *care),
        MembersChange::Remove { member, care } => {
            let mut urls = old.urls().to_vec();
            urls.remove(index_of(old, member)?);
            (urls, *care)
        }
        MembersChange::Readmit { member } => return readmit(args, old, member),
        MembersChange::Replace { .. } => return replace(args, old, change),
    };
    let new = Quorum::at(&urls)?;
    let (lost, set) = runtime()?.block_on(async {
        let lost = LostLocks::find(&servers, care).await?;
        let set = match care.dry_run {
            true => new.check_succession(old.urls()).await?,
            false => new.succeed(old.urls()).await?,
        };
        Ok::<_, Failure>((lost, set))
    })?;
    let outcome = ChangeOutcome {
        set,
        urls: urls.iter().map(|url| without_login(url)).collect(),
        lost,
        is_dry: care.dry_run,
    };
    outcome.print(args.json)?;
    Ok(ExitCode::SUCCESS)
}

/// The locks that holders lose, because a change refuses all clients that still use the old list.
struct LostLocks(LockListing);

/// At most this many locks are named.
const SHOWN_MAX: usize = 10;

impl LostLocks {
    /// Finds the locks that are held. Fails if there are any, unless the operator accepts that.
    async fn find(servers: &Servers, care: ChangeCare) -> Result<Self, Failure> {
        let listed = servers
            .client()
            .list_locks(&Pattern::all(), SHOWN_MAX)
            .await;
        let lost = match listed.and_then(minority::require_majority) {
            Ok(listing) => Self(listing),
            Err(error) if care.yes => {
                tracing::debug!(%error, "the locks that are held are not known");
                Self(LockListing::new(Vec::new(), false))
            }
            Err(error) => {
                let text = format!(
                    "cannot tell which locks would be lost: {error}; nothing was changed. To change the quorum \
                     all the same, add --yes"
                );
                return Err(Failure::new(ExitCode::of_error(&error), text));
            }
        };
        if care.yes || care.dry_run || lost.0.locks.is_empty() {
            return Ok(lost);
        }
        Err(Failure::new(
            ExitCode::BUSY,
            format!(
                "holders with the old list would lose their locks, and `run` would end their commands: {}. \
                 Nothing was changed. To move a server to another address without a loss, use `leasehold \
                 members replace`. To lose these locks, add --yes",
                lost.phrases().join("; ")
            ),
        ))
    }

    /// Each lock with its holders.
    fn phrases(&self) -> Vec<String> {
        let phrase = |lock: &leasehold::look::ListedLock| {
            let holders = lock.holders.iter().map(|sight| sight.holder.clone());
            let holders: Vec<_> = holders.collect();
            format!(
                "{:?} held by {}",
                lock.key.as_str(),
                holder_text::phrases(&holders)
            )
        };
        let mut phrases: Vec<_> = self.0.locks.iter().map(phrase).collect();
        if self.0.more {
            phrases.push("and more".to_owned());
        }
        phrases
    }

    fn names(&self) -> Vec<&str> {
        let locks = self.0.locks.iter();
        locks.map(|lock| lock.key.as_str()).collect()
    }
}

/// What a change did, or would do.
struct ChangeOutcome {
    set: MemberSet,
    urls: Vec<String>,
    lost: LostLocks,
    is_dry: bool,
}

impl ChangeOutcome {
    fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
            return output::print_json(&self.json());
        }
        output::print(&self.text())
    }

    fn ids(&self) -> Vec<&str> {
        self.set.ids.iter().map(MemberId::as_str).collect()
    }

    fn json(&self) -> Value {
        json!({
            "dry_run": self.is_dry,
            "members": self.ids(),
            "store": self.urls,
            "locks_lost": self.lost.names(),
            "more_lost": self.lost.0.more,
            "next_change_in_ms": millis(wait_after_change(&self.set)),
        })
    }

    fn text(&self) -> String {
        let (ids, urls) = (self.ids().join(", "), self.urls.join(","));
        let lost = self.lost.phrases();
        if self.is_dry {
            let lost = match lost.is_empty() {
                true => "No lock is held.".to_owned(),
                false => format!("These locks would be lost: {}.", lost.join("; ")),
            };
            return format!(
                "the quorum would be {ids}\n\
                 All clients would need the new list at once: --store {urls}\n\
                 {lost}\n"
            );
        }
        let lost = match lost.is_empty() {
            true => "No lock was held.".to_owned(),
            false => format!("They lose the locks they hold: {}.", lost.join("; ")),
        };
        let wait = whole_seconds(wait_after_change(&self.set));
        format!(
            "the quorum is now {ids}\n\
             Configure all clients with the new list at once: --store {urls}\n\
             Clients with the old list are refused from now on. {lost}\n\
             The next change is possible in {wait}.\n"
        )
    }
}

fn with(quorum: &Quorum, url: &str) -> Result<Vec<String>, Failure> {
    if url.contains(',') {
        return Err(Failure::usage(
            "one server can be added at a time; give one URL",
        ));
    }
    let mut urls = quorum.urls().to_vec();
    urls.push(config::with_default_password(url)?);
    Ok(urls)
}
