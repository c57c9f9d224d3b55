//! The subcommands.

pub(crate) mod admin;
pub(crate) mod holding;
pub(crate) mod looking;

use std::path::{Path, PathBuf};

use clap_complete::Shell;

use crate::commands::admin::break_lock::BreakArgs;
use crate::commands::admin::doctor::args::DoctorArgs;
use crate::commands::admin::gc::GcArgs;
use crate::commands::admin::init::InitArgs;
#[cfg(feature = "redis")]
use crate::commands::admin::members::args::MembersArgs;
use crate::commands::holding::elect::args::ElectArgs;
use crate::commands::holding::fence::args::{FenceAction, FenceArgs};
use crate::commands::holding::handle::args::{AcquireArgs, ReleaseArgs, RenewArgs};
use crate::commands::holding::hold::args::HoldArgs;
use crate::commands::holding::once::args::OnceArgs;
use crate::commands::holding::run::args::RunArgs;
#[cfg(feature = "exporter")]
use crate::commands::looking::exporter::ExporterArgs;
use crate::commands::looking::ls::LsArgs;
use crate::commands::looking::status::StatusArgs;
#[cfg(feature = "top")]
use crate::commands::looking::top::TopArgs;
use crate::commands::looking::wait::WaitArgs;
use crate::commands::looking::waiters::WaitersArgs;
use crate::options::readiness_args::ReadinessArgs;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Subcommand {
    /// Run a command while holding a lock.
    ///
    /// Waits for the lock NAME, runs CMD, and releases the lock when CMD ends. If the lock is lost before
    /// that, leasehold ends CMD and all its child processes (SIGTERM, then SIGKILL) before the lease
    /// expires, and exits with 76.
    ///
    /// Servers serve waiters in arrival order. Lock files have no queue.
    ///
    /// CMD runs in its own process group, which gets the terminal. Background processes that CMD leaves
    /// behind are neither awaited nor ended.
    ///
    /// The lease is not renewed while CMD is stopped (for example by Ctrl-Z): leasehold ends CMD before
    /// the lease expires. A lock file does not expire, so CMD may stay stopped there.
    ///
    /// With --also, CMD holds several locks. It gets all of them or none. Two runs never deadlock, even
    /// if they name the locks in different orders. Losing one lock ends CMD. Runs that are nested in other runs do
    /// not have this protection.
    ///
    /// With --handle-file, CMD is a step under the lock of a handle from `acquire`.
    #[command(
        override_usage = "leasehold run [OPTIONS] <NAME> [--] <CMD>...\n       \
                          leasehold run --handle-file <FILE> [OPTIONS] -- <CMD>..."
    )]
    Run(RunArgs),

    /// Run a command only while elected leader.
    ///
    /// Campaigns under NAME and runs CMD once elected. At most one client leads at a time. Observers can
    /// read the text that --value publishes.
    ///
    /// If the leadership is lost, leasehold ends CMD and all its child processes before another client
    /// can lead. It then campaigns again after a pause of 0.5 s to 30 s, which grows with each loss in
    /// quick succession. Once the store has answered, it keeps campaigning through an outage of any length.
    ///
    /// When CMD ends by itself, leasehold resigns and exits with the code of CMD. After SIGTERM, SIGINT
    /// or SIGQUIT it does not campaign again.
    ///
    /// A paused machine cannot know that its lease has expired, so two processes may believe that they
    /// lead. CMD should pass LEASEHOLD_FENCE with every write, and the receiver should refuse a smaller
    /// fence than it has seen. Signals, terminal and process group are as for `run`.
    ///
    /// With --observe, prints the leader whenever it is another one, in the order of fences: never an older leader
    /// after a newer one. It polls the store, so it misses a leader that led for less than --every.
    #[command(
        override_usage = "leasehold elect [OPTIONS] <NAME> [--] <CMD>...\n       \
                          leasehold elect --observe [--once] [OPTIONS] <NAME>"
    )]
    Elect(ElectArgs),

    /// Run a command once, then replay its result.
    ///
    /// The first call with KEY runs CMD under the lock KEY, as `run` does, and commits its result: what
    /// it wrote to stdout and stderr, and its exit code. For the time of --retain, later calls replay
    /// that result without running anything. A call that arrives while CMD runs waits for the result.
    ///
    /// At most one result is committed, but CMD may run more than once: if an attempt dies or loses its
    /// lock, the next call runs CMD again after the TTL. Make CMD idempotent, or have its target compare
    /// LEASEHOLD_FENCE. A call that exits with 69 or 76 after CMD has ended says so. The next call then
    /// replays the result if it was committed, and otherwise runs CMD.
    ///
    /// The same KEY with another CMD, or another --payload, is an error (64).
    ///
    /// A result must survive restarts. In a quorum, every server must be durable (appendonly yes,
    /// appendfsync always) before `leasehold init`; otherwise the call is refused and names the servers.
    /// A server that lost its data, joined or became durable later has no vote on results until --retain
    /// has passed, nor has a quorum that was never initialized with `leasehold init`. If too few servers
    /// have a vote, the call exits with 69 and runs nothing. A single
    /// server is used as it is, and a request that it forgets runs again. The same holds for any store
    /// after an old backup or a removed record file. Results do not move to new members of a quorum.
    ///
    /// The output of CMD is shown as it comes, through a pipe: CMD sees no terminal on stdout and stderr.
    /// The first 524,261 bytes of each are kept, including any secrets in them. A replay writes stdout
    /// first. The result is committed before a slow reader has read it all; a signal ends the wait for
    /// that reader. If stdout cannot be written, for example because a disk is full, the call exits with 74;
    /// the committed result stays, and the same call replays it.
    #[command(
        override_usage = "leasehold once [OPTIONS] <KEY> [--] <CMD>...\n       \
                          leasehold once --show|--forget [OPTIONS] <KEY>\n       \
                          leasehold once --list [OPTIONS] [PATTERN]"
    )]
    Once(OnceArgs),

    /// Hold a lock until stdin closes or a signal arrives.
    ///
    /// Waits for the lock NAME, prints one line of JSON on stdout, and renews the lease. When stdin
    /// closes (for example because the calling script ended), it releases the lock and exits with 0. After
    /// SIGTERM, SIGINT, SIGHUP or SIGQUIT it releases the lock and exits with 128+n. If stdin closes while
    /// it waits, it exits as if the lock was not acquired in time.
    ///
    /// If the lock is lost, `hold` prints a second line and exits with 76. The script must then stop its
    /// own work; `leasehold run` does that for you.
    ///
    /// Each line has `version` (1; fields may be added, not changed) and `event`. `held` has `lock`,
    /// `store`, `mode`, `permits`, `fence`, `ttl_ms`, `expires_in_ms` (the end of the lease without
    /// further renewals, null if it does not expire) and `waited_ms`. `lost` has `lock` and `reason`.
    ///
    /// Stdin must be a pipe, a socket or a terminal. /dev/null and files end at once and are refused; with
    /// --ignore-stdin, only a signal ends the hold.
    Hold(HoldArgs),

    /// Acquire a lock, print a handle to it, and exit.
    ///
    /// No process renews the lease: it expires after the TTL unless `leasehold renew` extends it. The TTL
    /// cannot exceed the maximum of the store: 24h, or what `leasehold init` set for a quorum (60s by
    /// default). If one process can stay, use `leasehold run` or `leasehold hold` instead: they renew.
    ///
    /// A handle is valid on this machine until its deadline or the next reboot. `renew` prints a new one
    /// with a later deadline; `release` accepts any of them. Copies of a handle are one holder with one
    /// fence.
    ///
    /// Treat the handle as a secret: it can release the lock. It is read from stdin, from LEASEHOLD_HANDLE
    /// or from a file, never from the arguments. LEASEHOLD_HANDLE takes precedence over stdin, even if it
    /// was inherited: do not export it to steps that use other locks.
    ///
    /// A lock file ends with its process, so a file store has no handles. Use `leasehold hold` there.
    Acquire(AcquireArgs),

    /// Renew the lease of a handle and print the new handle.
    ///
    /// With --handle-file, replaces the handle in FILE and prints the time that is left. Exits with 76 if
    /// the lock was lost: the lease has ended, or the deadline of the handle has passed and another client
    /// may have held the lock since. Exits with 69 if the store could not decide; the old handle stays
    /// valid until its deadline, so try again.
    Renew(RenewArgs),

    /// Release the lock of a handle.
    ///
    /// With --handle-file, also removes FILE. Exits with 76 if the lock was no longer held by this handle;
    /// other holders are not affected.
    Release(ReleaseArgs),

    /// Show the holders of a lock and its first ten waiters.
    ///
    /// With --json, shows all waiters.
    #[command(visible_alias = "show")]
    Status(StatusArgs),

    /// List the locks that are held, and their holders.
    ///
    /// If the servers of a quorum disagree about a lock, the list says how many servers name each holder.
    /// Such a lock is being acquired or released, or is left over from a failed attempt and expires by
    /// itself. The listing reads each server in many short steps, even with many keys.
    #[command(visible_alias = "list")]
    Ls(LsArgs),

    /// Show locks, holders and waiters in a live view.
    ///
    /// Asks the store every two seconds. The queues are those of the locks on the screen. Of a quorum, it shows which
    /// servers have a vote. If the store does not answer, its last answer stays, and a red line says why.
    ///
    /// Keys: the arrows select a lock; / filters by a text in names and holders; s changes the order, r reverses it; Enter
    /// asks the store at once; q quits.
    ///
    /// b breaks the lease of the selected lock, as `leasehold break` does: it asks for a reason, shows the holder, and
    /// breaks nothing unless you press y.
    ///
    /// There is no --json: programs use `leasehold ls --json`.
    #[cfg(feature = "top")]
    Top(TopArgs),

    /// List the waiters of a lock in the order of service.
    ///
    /// Shows at most 1000 waiters. Lock files have no queue.
    Waiters(WaitersArgs),

    /// Wait until a lock is free, without taking it.
    ///
    /// Another client may take the lock the next moment. To do something while no other client can, use `leasehold run`.
    Wait(WaitArgs),

    /// Print or serve metrics of a store for Prometheus.
    ///
    /// Without an option, prints them once. docs/monitoring has all metrics, rules for alerts, and a dashboard for Grafana.
    #[cfg(feature = "exporter")]
    Exporter(ExporterArgs),

    /// Take a lock away from a holder.
    ///
    /// The holder learns of it at its next renewal; `run` then ends its command and exits with 76. The
    /// lease keeps others out until the holder has ended, or until the lease would have expired. So no other client acquires
    /// the lock while the old holder still works. --now ends the lease at once. The store keeps who broke the lock, when and
    /// why for 7 days; `status` shows it.
    ///
    /// --fence names the lease to break, as `leasehold status` shows it, so that a later holder is not hit
    /// by mistake. If several clients share the lock or have its permits, --dry-run shows the option for each. In a quorum, a
    /// majority must carry out the break; it is safe to repeat it.
    ///
    /// A lock file cannot be
    /// broken: end the process that holds it (`leasehold status` shows which). A lock of another
    /// library has no fence: release it with that library, or delete its key once its program is gone.
    Break(BreakArgs),

    /// Initialize a store before its first use.
    ///
    /// Creates or updates the schema of a PostgreSQL server, and initializes a quorum of Redis servers. Other stores need no
    /// initialization: it says so and exits with 0. It is safe to repeat.
    ///
    /// For a quorum, it writes the list of servers and the limits of the quorum to each server. All servers must answer,
    /// belong to no other quorum and hold no locks; otherwise nothing is written.
    ///
    /// Without `init`, the first client initializes the quorum once all servers have answered. The servers
    /// may have lost their data before, so they have no vote for the maximum TTL and a second (61s by
    /// default), and `once` runs no command until a majority remembers a day. `init` states that nothing
    /// was lost: all servers have a vote, and `once` works, at once. You can still run it after a client
    /// initialized the quorum. If locks may have been granted since, add --new. Use it for new servers, not
    /// for servers of a quorum in use that have lost their data.
    Init(InitArgs),

    /// Show the servers of a quorum, or change its members.
    ///
    /// A server has no vote for the maximum TTL and a second (61s by default) after a restart without all
    /// its data, after FLUSHALL, or after a step of its clock. A durable server keeps its data.
    ///
    /// Exits with 0 if a majority of the servers has a vote, and with 69 otherwise.
    #[cfg(feature = "redis")]
    Members(MembersArgs),

    /// Remove unused lock files.
    ///
    /// Each lock that was ever taken on files keeps a small file. A file stays if its lock is held or was used a short time
    /// ago. Fences keep growing without it. It is safe while other processes take locks.
    Gc(GcArgs),

    /// Check a store and say how to fix what is wrong.
    ///
    /// Checks each server and the quorum as a whole, or the folder of lock files. Green: fine. Yellow:
    /// could be better, or could not be checked. Red: locks cannot be acquired, or are not safe.
    ///
    /// Changes nothing: it takes no lock and writes no data. It checks rights with commands that have no
    /// effect; a missing right may appear in the ACL LOG of the server. Takes a few seconds, also when
    /// servers do not answer.
    ///
    /// Exits with 0 if nothing is red, with 69 if less than a majority has a vote, otherwise with 78.
    Doctor(DoctorArgs),

    /// Reject writes from an outdated lock holder.
    Fence(FenceArgs),

    /// Print shell completions.
    ///
    /// In bash, zsh and fish they also complete the names of the locks that are held. A store that takes longer than a second
    /// to answer has no names.
    Completions {
        /// The shell.
        shell: Shell,
    },

    /// Print the man page of leasehold or of a subcommand.
    Man {
        /// The subcommand, for example `run` or `fence check`.
        ///
        /// Without it, prints the page of leasehold itself.
        subcommand: Vec<String>,

        /// Write the pages of all subcommands to this folder.
        ///
        /// The files are named as `man` expects, for example leasehold-run.1.
        #[arg(long, value_name = "FOLDER", conflicts_with = "subcommand")]
        write: Option<PathBuf>,
    },
}

impl Subcommand {
    /// Whether the result repeats all that the library reports on the way.
    pub(crate) fn reports_warnings(&self) -> bool {
        match self {
            Self::Doctor(_) => true,
            #[cfg(feature = "top")]
            Self::Top(_) => true,
            #[cfg(feature = "redis")]
            Self::Members(args) => args.change.is_none(),
            _ => false,
        }
    }

    /// Whether it takes locks. Then its last message is the exit code, for programs.
    pub(crate) fn reports_end(&self) -> bool {
        matches!(
            self,
            Self::Run(_) | Self::Elect(_) | Self::Hold(_) | Self::Acquire(_)
        ) || matches!(self, Self::Once(args) if !args.show && !args.forget && !args.list)
    }

    /// The file for its events.
    pub(crate) fn events_file(&self) -> Option<&Path> {
        let shown = match self {
            Self::Run(args) => &args.shown,
            Self::Once(args) => &args.shown,
            Self::Elect(args) => &args.shown,
            _ => return None,
        };
        shown.json_file.as_deref()
    }

    /// How other programs see that it holds its lock.
    pub(crate) fn readiness(&self) -> Option<&ReadinessArgs> {
        match self {
            Self::Run(args) => Some(&args.readiness),
            Self::Hold(args) => Some(&args.readiness),
            Self::Elect(args) => Some(&args.readiness),
            _ => None,
        }
    }

    /// Whether the messages of the program are JSON.
    pub(crate) fn prints_json(&self) -> bool {
        match self {
            Self::Run(args) => args.json,
            Self::Hold(args) => args.json,
            Self::Acquire(args) => args.json,
            Self::Renew(args) => args.json,
            Self::Release(args) => args.json,
            Self::Once(args) => args.json,
            Self::Status(args) => args.json,
            Self::Ls(args) => args.json,
            Self::Waiters(args) => args.json,
            Self::Break(args) => args.json,
            Self::Init(args) => args.json,
            Self::Gc(args) => args.json,
            #[cfg(feature = "redis")]
            Self::Members(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Fence(args) => match &args.action {
                FenceAction::Check(args) => args.json,
            },
            Self::Elect(args) => args.json,
            _ => false,
        }
    }
}
