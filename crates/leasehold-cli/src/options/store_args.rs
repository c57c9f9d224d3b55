use clap::Args;

/// The title above these options in help.
const STORE_OPTIONS: &str = "Store options";

/// Which store to use. Part of most subcommands.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StoreArgs {
    /// Use this store: one URL, or several for a quorum.
    ///
    /// A URL is file:///folder, redis://…, rediss://… (TLS), unix://… (a socket), postgres://…, etcd://…, etcds://… (TLS),
    /// zk://… or zks://… (TLS). Several Redis URLs, separated by commas, form a quorum. A URL of etcd or ZooKeeper names
    /// several servers: etcd://a,b,c. Default: LEASEHOLD_STORE, then leasehold.toml in the
    /// configuration folder, then files of this machine and user.
    #[arg(
        long,
        global = true,
        help_heading = STORE_OPTIONS,
        value_name = "URL,URL,…",
        conflicts_with = "local"
    )]
    pub(crate) store: Option<String>,

    /// Use the files of this machine and user.
    ///
    /// Ignores every configured store.
    #[arg(long, global = true, help_heading = STORE_OPTIONS)]
    pub(crate) local: bool,
}
