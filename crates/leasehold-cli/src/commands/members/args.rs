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

/// Changes the members of a quorum, one server at a time.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum MembersChange {
    /// Add one server to the quorum.
    ///
    /// --store names the current servers. All of them, and the new one, must answer. Clients with the old
    /// list are refused afterwards: they lose the locks they hold, and `run` ends their commands. Change the
    /// configuration of all clients at the same time, best while no lock is held (`leasehold ls`).
    Add {
        /// The URL of the new server.
        url: String,
    },

    /// Remove one server from the quorum, even if it is dead.
    ///
    /// --store names the current servers. All that remain must answer. Clients with the old list are refused
    /// afterwards: they lose the locks they hold, and `run` ends their commands. Change the configuration of all
    /// clients at the same time, best while no lock is held (`leasehold ls`).
    Remove {
        /// The server: its id as in `leasehold members`, or its URL.
        #[arg(value_name = "ID|URL")]
        member: String,
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
