use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::look::Owner;
use leasehold::store::locked;
use leasehold::{Error, Fence, Key};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// The waits of a session that the server notifies, or that get the lock from another guard of the session.
#[derive(Debug)]
pub(crate) struct Waits {
    waiting: Mutex<HashMap<Owner, Arc<Waiting>>>,
    /// Whether a task keeps their places.
    is_kept: AtomicBool,
    /// How many connections hear notifications.
    listening: AtomicUsize,
    /// Bounds the waits that ask at the same time.
    asking: Semaphore,
}

/// The most waits that ask at the same time, without those that the server notified.
const ASKING_MAX: usize = 128;

/// The most waits that ask again at the usual pace. With more, each asks less often.
const OFTEN: u32 = 4;

#[derive(Debug)]
struct Waiting {
    key: Key,
    notify: Notify,
    news: Mutex<Option<News>>,
    has_place: AtomicBool,
}

/// What a wait hears.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// Ask after this time: the lock may be free then.
    Ask(Duration),
    /// The server no longer has a place for it.
    Gone,
    /// Another guard of the client passed the lock on.
    Granted(HandOver),
    /// The server does not answer, or answers again.
    Away(Error),
    Back,
}

impl News {
    /// Returns which news a wait hears if several come at once: the greatest.
    fn weight(&self) -> u8 {
        match self {
            Self::Granted(_) => 4,
            Self::Ask(Duration::ZERO) => 3,
            Self::Ask(_) => 2,
            Self::Gone => 1,
            Self::Away(_) | Self::Back => 0,
        }
    }
}

/// A grant in the answer to a release of the same client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandOver {
    pub(crate) fence: Fence,
    /// Before the release was sent, so the lease cannot have begun earlier.
    pub(crate) since: BootInstant,
}

/// One of the waits. It ends when dropped.
pub(crate) struct Wait<'a> {
    waits: &'a Waits,
    owner: Owner,
    waiting: Arc<Waiting>,
}

/// A connection that hears notifications, until dropped.
pub(crate) struct Listening(Arc<Waits>);

impl Waits {
    pub(crate) fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            is_kept: AtomicBool::new(false),
            listening: AtomicUsize::new(0),
            asking: Semaphore::new(ASKING_MAX),
        }
    }

    /// Begins the wait of `owner` for `key`.
    pub(crate) fn enter(&self, owner: Owner, key: &Key) -> Wait<'_> {
        let waiting = Arc::new(Waiting {
            key: key.clone(),
            notify: Notify::new(),
            news: Mutex::default(),
            has_place: AtomicBool::new(false),
        });
        locked(&self.waiting).insert(owner, Arc::clone(&waiting));
        Wait {
            waits: self,
            owner,
            waiting,
        }
    }

    /// Returns the owners with places, and their locks; `None` if there are no waits, and the task that keeps places ends.
    pub(crate) fn places(&self) -> Option<Vec<(Owner, Key)>> {
        let all = locked(&self.waiting);
        if all.is_empty() {
            self.is_kept.store(false, Ordering::Relaxed);
            return None;
        }
        let placed = all
            .iter()
            .filter(|(_, waiting)| waiting.has_place.load(Ordering::Relaxed));
        Some(
            placed
                .map(|(owner, waiting)| (*owner, waiting.key.clone()))
                .collect(),
        )
    }

    /// Wakes the wait that the payload of a notification names. A wait that has ended hears nothing.
    pub(crate) fn wake(&self, payload: &str) {
        if let Ok(owner) = payload.parse::<Owner>() {
            self.tell(owner, News::Ask(Duration::ZERO));
        }
    }

    /// Tells the wait of `owner`. If it has ended, the client releases the owner.
    pub(crate) fn tell(&self, owner: Owner, news: News) {
        let waiting = locked(&self.waiting).get(&owner).cloned();
        if let Some(waiting) = waiting {
            waiting.hear(news);
        }
    }

    /// Tells all waits.
    pub(crate) fn tell_all(&self, news: &News) {
        let all = locked(&self.waiting);
        all.values().for_each(|waiting| waiting.hear(news.clone()));
    }

    /// Tells one wait to ask if no connection listens. The wait opens one that does.
    pub(crate) fn listen_again(&self) {
        if self.listening.load(Ordering::Relaxed) > 0 {
            return;
        }
        let one = locked(&self.waiting).values().next().cloned();
        if let Some(waiting) = one {
            waiting.hear(News::Ask(Duration::ZERO));
        }
    }

    pub(crate) fn listening(self: &Arc<Self>) -> Listening {
        self.listening.fetch_add(1, Ordering::Relaxed);
        Listening(Arc::clone(self))
    }

    /// Waits until few enough others ask.
    pub(crate) async fn turn_to_ask(&self) -> Option<SemaphorePermit<'_>> {
        self.asking.acquire().await.ok()
    }

    /// How often a wait asks without news, if one that waits alone asks after `alone`.
    pub(crate) fn pace(&self, alone: Duration) -> Duration {
        let count = u32::try_from(locked(&self.waiting).len()).unwrap_or(u32::MAX);
        alone.saturating_mul((count / OFTEN).max(1))
    }
}

impl Waiting {
    fn hear(&self, news: News) {
        let mut last = locked(&self.news);
        let is_kept = last
            .as_ref()
            .is_some_and(|last| last.weight() > news.weight());
        if !is_kept {
            *last = Some(news);
        }
        drop(last);
        self.notify.notify_one();
    }
}

impl Wait<'_> {
    /// Resolves when there is news, or at once if there was some since the last call.
    pub(crate) async fn news(&self) -> News {
        loop {
            self.waiting.notify.notified().await;
            if let Some(news) = locked(&self.waiting.news).take() {
                return news;
            }
        }
    }

    /// Notes that the server has a place for it. Returns whether the caller starts the task that keeps the places.
    pub(crate) fn has_place(&self) -> bool {
        self.waiting.has_place.store(true, Ordering::Relaxed);
        let _all = locked(&self.waits.waiting);
        !self.waits.is_kept.swap(true, Ordering::Relaxed)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        locked(&self.waits.waiting).remove(&self.owner);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.listening.fetch_sub(1, Ordering::Relaxed);
    }
}
