use clap::Args;

use crate::options::store_args::StoreArgs;

#[derive(Debug, Args)]
pub(crate) struct MembersArgs {
    #[command(subcommand)]
    pub(crate) change: Option<MembersChange>,

    #[command(flatten)]
    pub(crate) store: StoreArgs,

    /// Print one JSON object on stdout.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// How a change treats locks that are held.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ChangeCare {
    /// Change the quorum even if holders lose their locks.
    #[arg(long)]
    pub(crate) yes: bool,

    /// Show the new list and lost locks, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Changes the members of a quorum, one server at a time.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MembersChange {
    /// Add one server to the quorum.
    ///
    /// --store names the current servers. All of them, and the new one, must answer. Clients with the old
    /// list are refused afterwards: they lose the locks they hold, and `run` ends their commands. Change the
    /// configuration of all clients at the same time. While locks are held, nothing is changed without --yes.
    /// To move a server to another address, use `leasehold members replace`, which loses no lock.
    Add {
        /// The URL of the new server.
        url: String,

        #[command(flatten)]
        care: ChangeCare,
    },

    /// Remove one server from the quorum, even if it is dead.
    ///
    /// --store names the current servers. All that remain must answer. Clients with the old list are refused
    /// afterwards: they lose the locks they hold, and `run` ends their commands. Change the configuration of all
    /// clients at the same time. While locks are held, nothing is changed without --yes. To move a server to
    /// another address, use `leasehold members replace`, which loses no lock.
    Remove {
        /// The server: its id as in `leasehold members`, or its URL.
        #[arg(value_name = "ID|URL")]
        member: String,

        #[command(flatten)]
        care: ChangeCare,
    },

    /// Move a server of the quorum to another address.
    ///
    /// --store names the current servers. The new server takes the id of the old one, by `?id=` in its URL, so
    /// no lock is lost and clients with the old list go on. A majority of the other servers must answer, and
    /// the new server must be empty. The old server loses its vote at once; the new one has a vote after
    /// max_ttl and a second. Then give the new list to all clients, in any order.
    ///
    /// Give no client the new list before. Until all clients have it, do not empty the old server, and start no
    /// other one at its address. Such a server would take the id back, and the new one would have no vote. A
    /// member that was replaced is not replaced again with the old list.
    Replace {
        /// The server to replace: its id, or its URL.
        #[arg(value_name = "ID|URL")]
        old: String,

        /// The URL of the new server.
        #[arg(value_name = "NEW")]
        new: String,

        /// State that the old server is stopped for good.
        ///
        /// Needed if it does not answer. Clients with the old list that still reach it get no vote from it.
        #[arg(long)]
        gone: bool,

        /// Show the new list, and change nothing.
        #[arg(long)]
        dry_run: bool,
    },

    /// Give a server that lost its data a new record.
    ///
    /// Clients do this by themselves once a majority of the servers has the record of this quorum,
    /// or once all servers answer. Use it if the other servers cannot come back. The server has no
    /// vote for max_ttl and a second afterwards.
    ///
    /// Before you use it, make sure that no server that does not answer belongs to another quorum
    /// by now. Otherwise two clients can hold the same lock.
    Readmit {
        /// The server: its id as in `leasehold members`, or its URL.
        #[arg(value_name = "ID|URL")]
        member: String,
    },
}
