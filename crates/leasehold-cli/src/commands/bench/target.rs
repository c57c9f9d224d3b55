use std::cell::OnceCell;
use std::fs;
use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold::clock::{Clock as _, SystemClock};
use leasehold::store::MemberStatus;
use leasehold::{Error, Key};
use leasehold_file::FileStore;
use leasehold_redis::RedisMember;

use super::renewals::Leases;
use crate::config::Choice;
use crate::output::Output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::message::Message;
use crate::output::quorum_shortfall::{NOT_INITIALIZED, have_no_record};
use crate::store::OpenStore;
use crate::store::address::StoreAddress;
use crate::store::client::OwnClient;
use crate::store::limit::{MEMBER_LIMIT, limited};

/// The store to measure, as two clients use it, and its parts.
#[derive(Debug)]
pub(super) struct BenchTarget {
    pub(super) clients: [OwnClient; 2],
    pub(super) leases: Leases,
    pub(super) members: Vec<RedisMember>,
    /// Whether each of the members answered at first; empty before they were asked.
    reached: OnceCell<Vec<Result<MemberStatus, Error>>>,
    files: Option<FileStore>,
}

impl BenchTarget {
    /// Nothing is sent yet.
    pub(super) fn open(choice: &Choice, output: &Output) -> Result<(Self, Duration), Failure> {
        let stores = [OpenStore::open(choice)?, OpenStore::open(choice)?];
        stores[0].print_notice(output);
        let longest = stores[0].ttl_max();
        let third = OpenStore::open(choice)?;
        let target = Self {
            clients: stores.each_ref().map(OpenStore::client),
            leases: Leases::new(third.store()),
            members: servers(choice)?,
            reached: OnceCell::new(),
            files: third.into_files(),
        };
        Ok((target, longest))
    }

    /// Asks all members at once, which opens the connections and writes nothing. Refuses a quorum that is
    /// not initialized, because a client would initialize it.
    pub(super) async fn reach(&self) -> Result<&[Result<MemberStatus, Error>], Failure> {
        let asking = self
            .members
            .iter()
            .map(|member| limited(MEMBER_LIMIT, member.status()));
        let answers = join_all(asking).await;
        let heard = answers.iter().filter_map(|answer| answer.as_ref().ok());
        if have_no_record(self.members.len(), heard) {
            return Err(Failure::new(ExitCode::UNREACHABLE, NOT_INITIALIZED));
        }
        Ok(self.reached.get_or_init(|| answers))
    }

    /// Releases and removes what the measurement left under `keys`, and warns about what remains.
    pub(super) async fn clean_up(self, keys: Vec<Key>, output: &Output) {
        self.leases.free().await;
        // Each waits for its releases in progress.
        drop(self.clients);
        if let Some(files) = &self.files
            && let Err(error) = remove(files, &keys).await
        {
            let text = format!("cannot remove a lock file of the measurement: {error}");
            output.print_message(&Message::Warning(&text));
        }
        let reached = self.reached.into_inner().unwrap_or_default();
        let answering = self.members.iter().zip(&reached);
        let forgetting = answering
            .filter(|(_, first)| first.is_ok())
            .map(|(member, _)| forget(member, keys.clone()));
        for left in join_all(forgetting)
            .await
            .into_iter()
            .filter_map(Result::err)
        {
            output.print_message(&Message::Warning(&left));
        }
    }
}

/// The servers of the store.
fn servers(choice: &Choice) -> Result<Vec<RedisMember>, Failure> {
    let Choice::Stores(addresses) = choice else {
        return Ok(Vec::new());
    };
    match StoreAddress::of(addresses)? {
        StoreAddress::Folder(_) => Ok(Vec::new()),
        StoreAddress::Servers(urls) => urls.iter().map(|url| Ok(RedisMember::new(url)?)).collect(),
    }
}

/// Removes the lock files of `keys` until there is none, because an interrupted attempt may still create
/// one.
async fn remove(files: &FileStore, keys: &[Key]) -> io::Result<()> {
    loop {
        let mut removed = false;
        for key in keys {
            match fs::remove_file(files.lock_file(key)) {
                Ok(()) => removed = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if !removed {
            return Ok(());
        }
        SystemClock.sleep_until(SystemClock.now() + PAUSE).await;
    }
}

/// Removes the data of `keys` from `member`, each once it is free there.
async fn forget(member: &RedisMember, mut keys: Vec<Key>) -> Result<(), String> {
    let end = SystemClock.now() + FORGET_MAX;
    loop {
        match limited(MEMBER_LIMIT, member.forget(&keys)).await {
            Ok(in_use) if in_use.is_empty() => return Ok(()),
            Ok(in_use) if SystemClock.now() >= end => {
                let count = in_use.len();
                return Err(format!(
                    "{count} locks of the measurement are still held on {}; they expire with their TTL",
                    member.id()
                ));
            }
            Ok(in_use) => keys = in_use,
            Err(error) => {
                let error = error.with_store(member.id().as_str());
                return Err(format!(
                    "cannot remove the locks of the measurement, which expire by themselves: {error}"
                ));
            }
        }
        SystemClock.sleep_until(SystemClock.now() + PAUSE).await;
    }
}

const PAUSE: Duration = Duration::from_millis(20);
const FORGET_MAX: Duration = Duration::from_secs(3);
