//! The options of everything that acquires locks, each written once.

/// Adds options to a builder, which keeps them in its field `options`, and the name of its lock in `key`.
macro_rules! lock_options {
    ($($option:ident),+ $(,)?) => {
        $($crate::acquire::lock_option! { $option })+
    };
}

macro_rules! lock_option {
    (key) => {
        /// Returns the name of the lock.
        ///
        /// # Errors
        ///
        /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if the name breaks a rule, as every call reports then.
        pub fn key(&self) -> Result<&Key, Error> {
            self.key.as_ref().map_err(Clone::clone)
        }
    };
    (ttl) => {
        /// Sets the TTL of each lease, which is how long a lock stays unavailable after its holder died.
        /// The client renews the lease after each third of the TTL, the first time somewhat sooner. Default:
        /// that of the client, or 30 s, or the TTL next to it that the store allows. Has no effect where the
        /// kernel frees locks.
        #[doc(alias = "timeout")]
        #[doc(alias = "expire")]
        #[doc(alias = "expiry")]
        #[doc(alias = "lease time")]
        pub fn ttl(mut self, ttl: Duration) -> Self {
            self.options.ttl = ttl;
            self.options.is_default_ttl = false;
            self
        }
    };
    (lock_delay) => {
        /// Sets how much longer a lock stays unavailable after an *unclean* end of its holder: it died, was
        /// cut off, or was paused past its deadline. Default: no longer.
        ///
        /// For resources that cannot compare [fences](crate::Fence). What such a holder sent before its end
        /// has this time to arrive before the next holder acts. The delay makes late writes rarer, but does
        /// not exclude them.
        ///
        /// Every lease lives for the TTL and the delay at the store, by the store's clock. A guard does not
        /// use the delay: its deadlines and renewals are those of the TTL. Releasing or dropping a valid
        /// guard frees the lock at once. A lost guard does not free it: the lock stays unavailable until the
        /// lease ends, and [`Guard::release`](crate::Guard::release) returns
        /// [`WasLost`](crate::ReleaseOutcome::WasLost). A guard held beyond [`max_hold`](Self::max_hold) is
        /// lost too, because its work may still be running. If one lock of a set is lost, the others are
        /// released without a delay.
        ///
        /// TTL and delay together must not exceed the store's longest TTL: a day, and on a quorum 60 s, unless its members
        /// agreed on another. If locks end with their process, no lease could last longer, and a
        /// delay is unsupported.
        #[doc(alias = "cooldown")]
        pub fn lock_delay(mut self, span: Duration) -> Self {
            self.options.lock_delay = span;
            self
        }
    };
    (wait) => {
        /// Sets the longest time to wait for other holders, and for a store that does not answer. A set
        /// waits that long for all its locks together. Default: that of the client, or no limit. With zero,
        /// the store is asked once. [`manual::waiting`](crate::manual::waiting#how-long-a-call-waits) has the rules.
        #[doc(alias = "timeout")]
        #[doc(alias = "block")]
        pub fn wait(mut self, wait: Duration) -> Self {
            self.options.wait = Some(wait);
            self.options.is_default_wait = false;
            self
        }
    };
    (max_hold) => {
        /// Sets the maximum hold time. The guard is lost after it, even if its holder is alive. Default: no
        /// limit. It counts from the lock's own grant, also while a set still waits for other locks.
        ///
        /// The client renews each lease until then. Renewal cannot be switched off, so a lock that must end by
        /// itself needs this limit. The lock is free once the lost guard is released or dropped, and
        /// otherwise when its lease ends. Lock files and the locks of ZooKeeper end with their client
        /// ([`Expiry`](crate::store::Expiry)), so there the lock is held until the guard is dropped.
        #[doc(alias = "lease time")]
        pub fn max_hold(mut self, max_hold: Duration) -> Self {
            self.options.max_hold = Some(max_hold);
            self
        }
    };
    (mode) => {
        /// Sets the mode: exclusive ([`Mode::Exclusive`], the default), shared ([`Mode::Shared`]), or with
        /// one of several permits ([`Mode::Permit`]).
        pub fn mode(mut self, mode: Mode) -> Self {
            self.options.mode = mode;
            self
        }
    };
    (barging) => {
        /// Sets whether to acquire ahead of the queue. The client then does not queue. It polls (every 10 to
        /// 50 ms), and takes the lock whenever it is free or only reserved for a waiter. Default: no. For the
        /// rare case that cannot wait its turn; it delays the waiters. Has no effect where the store grants
        /// locks in no order.
        pub fn barging(mut self, barging: bool) -> Self {
            self.options.barging = barging;
            self
        }
    };
}

pub(crate) use {lock_option, lock_options};
