//! The command line, run as its users run it: real processes, signals, terminals and servers.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod completions;
mod documents;
mod habits;
mod nobody;
mod redis_frozen;
mod redis_pictures;
mod stdout;

mod support {
    pub(crate) mod harness;
    pub(crate) mod processes;
    pub(crate) mod program;
    pub(crate) mod pty;
    pub(crate) mod stores;
}

mod run {
    pub(crate) mod also;
    mod defaults;
    pub(crate) mod ending;
    pub(crate) mod messages;
    pub(crate) mod min_hold;
    pub(crate) mod namespaces;
    pub(crate) mod nesting;
    pub(crate) mod on_each_store;
    mod readiness;
    mod record_end;
    mod releases;
    pub(crate) mod signals;
    pub(crate) mod stores;
    pub(crate) mod terminal;
    pub(crate) mod together;
    pub(crate) mod waiting;

    pub(crate) mod servers {
        pub(crate) mod redis;
        mod redis_no_threads;
        mod redis_not_ready;
        pub(crate) mod redis_py;
        pub(crate) mod redis_queue;
        mod redis_secrets;
    }
}

mod results {
    pub(crate) mod once;
    pub(crate) mod once_ending;
    mod once_inspect;
    pub(crate) mod once_readers;
    pub(crate) mod redis_once;
}

mod elections {
    pub(crate) mod elect;
    pub(crate) mod redis_elect;
}

mod holds {
    mod handles;
    pub(crate) mod hold;
    pub(crate) mod redis_handles;
    mod redis_steps;
    mod unread;
}

mod administration {
    pub(crate) mod doctor;
    mod etcd;
    pub(crate) mod inspect;
    mod locks;
    pub(crate) mod postgres;
    pub(crate) mod redis_break;
    pub(crate) mod redis_doctor;
    pub(crate) mod redis_holders;
    pub(crate) mod redis_json;
    pub(crate) mod redis_members;
    mod redis_minority;
    pub(crate) mod redis_wrong_address;
    mod silent;
    mod tables;
    #[cfg(feature = "top")]
    mod top;
    mod zookeeper;
}

mod monitoring {
    mod exporter;
    mod prometheus;
    mod redis_prometheus;
}

mod fences {
    pub(crate) mod fence;
    pub(crate) mod fence_disk;
}
