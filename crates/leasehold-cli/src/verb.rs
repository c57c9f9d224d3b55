use clap::Subcommand;
use clap_complete::Shell;

use crate::args::{InitArgs, MembersArgs, StatusArgs, postscript};
use crate::bench_args::BenchArgs;
use crate::break_args::BreakArgs;
use crate::doctor_args::DoctorArgs;
use crate::elect_args::ElectArgs;
use crate::fence_args::{FenceArgs, FenceDeed};
use crate::hold_args::{self, AcquireArgs, HoldArgs, ReleaseArgs, RenewArgs};
use crate::ls_args::LsArgs;
use crate::once_args::OnceArgs;
use crate::run_args::RunArgs;
use crate::waiters_args::WaitersArgs;

/// What is to be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a command while holding a lock.
    ///
    /// Waits for the lock NAME, runs CMD, and frees the lock when CMD has ended. If the lock is
    /// lost before, CMD and all it started are ended (SIGTERM, then SIGKILL) before the lease runs
    /// out, and the exit code is 76.
    ///
    /// On Redis those who wait are served in the order in which they began to, on files in none.
    ///
    /// CMD runs in a process group of its own, which gets the terminal. Processes that CMD leaves
    /// behind in the background when it ends by itself are neither waited for nor ended.
    ///
    /// While CMD is stopped, as by Ctrl-Z, nobody renews a lease: then CMD is ended before the lease
    /// runs out. A lock that is a file has no end, and CMD may stay stopped.
    ///
    /// With --also CMD runs while several locks are held: all or none are taken, and runs that want
    /// some of the same, in whatever order, never wait for each other in a circle. If one is lost, all
    /// count as lost. Runs within runs that take one lock each have no such order.
    ///
    /// CMD finds LEASEHOLD_NAME, LEASEHOLD_FENCE (the fencing token of NAME), LEASEHOLD_FENCES (those
    /// of all locks of this run, as a JSON object with their names) and LEASEHOLD_MEMBERS (the ids of
    /// the stores) in its environment.
    #[command(
        after_help = postscript(),
        override_usage = "leasehold run [OPTIONS] <NAME> [--] <CMD>..."
    )]
    Run(RunArgs),

    /// Run a command while being the leader, or see who is.
    ///
    /// Campaigns under NAME, and runs CMD once this one leads: nobody else does then. What --value says is
    /// published for those who observe. If the leadership is lost, CMD and all it started are ended before
    /// anybody else can lead, which is said, and this one campaigns again after a pause of 0.5 s to 30 s,
    /// longer after each loss that follows soon. Once it has led it goes on when the store does not answer, too.
    ///
    /// When CMD ends by itself this one resigns, and exits with CMD's code. After SIGTERM, SIGINT or SIGQUIT it
    /// does not campaign again.
    ///
    /// Two may think that they lead: a paused machine does not know that its time is over. What CMD does to
    /// others shows them LEASEHOLD_FENCE, and they refuse one smaller than they have seen. Signals,
    /// terminal, process group and environment of CMD are as with `run`.
    ///
    /// With --observe prints who leads, in the order of fences: never an older leader after a newer one. Anybody
    /// may observe, and it costs the store two reads a look.
    #[command(
        after_help = postscript(),
        override_usage = "leasehold elect [OPTIONS] <NAME> [--] <CMD>...\n       \
                          leasehold elect --observe [--once] [OPTIONS] <NAME>"
    )]
    Elect(ElectArgs),

    /// Run a command once, and replay what it did to whoever asks again.
    ///
    /// The first call with KEY runs CMD under the lock KEY, as `run` does, and commits its result: what it
    /// wrote to stdout and stderr, and its exit code. Later calls write the same and exit with the same
    /// code, without running anything, for --retain. A call that comes meanwhile waits.
    ///
    /// At most one result is committed: an attempt that was paused while the next one began commits
    /// nothing. But CMD may be run more than once: an attempt that dies, or loses its lock, is followed by
    /// the next call's, after its TTL. Let CMD compare LEASEHOLD_FENCE where it writes, or do what
    /// does no harm twice. A call that exits with 69 or 76 after CMD has ended says so; the next call
    /// then replays the result, if it was committed after all, or runs CMD.
    ///
    /// Under the same KEY another CMD, or another --payload, is an error (64).
    ///
    /// A result must outlive restarts. On several Redis servers each must be durable (appendonly yes,
    /// appendfsync always) before `leasehold init`, or the call is refused, naming those that are not. A server that
    /// lost its data, joined or became durable later has no vote on results until --retain has passed; while the
    /// others are no majority, the call exits with 69 and runs nothing. One server is used as it is: what it
    /// forgets is run again. So is, anywhere, what an old backup or a removed record file took away, and what
    /// only removed members had: results do not move to others.
    ///
    /// What CMD writes is shown as it comes, through a pipe: CMD sees no terminal on stdout and stderr. Of
    /// each the first 524,261 bytes are kept. A replay writes stdout first. Secrets that CMD writes are kept
    /// in the store. When CMD has ended, its result is committed before a reader that is slow is waited for; a
    /// signal ends that wait. If stdout cannot be written, on a full disk for example, the call exits with 74; the
    /// committed result stays, and the same call replays it.
    #[command(
        after_help = postscript(),
        override_usage = "leasehold once [OPTIONS] <KEY> [--] <CMD>..."
    )]
    Once(OnceArgs),

    /// Hold a lock for a script, until its stdin is closed or a signal comes.
    #[command(after_help = postscript(), long_about = hold_args::HOLD)]
    Hold(HoldArgs),

    /// Acquire a lock, print a handle to it, and end.
    #[command(after_help = postscript(), long_about = hold_args::ACQUIRE)]
    Acquire(AcquireArgs),

    /// Renew the lease of a handle once, and print the new handle.
    ///
    /// With --handle-file the new handle takes the place of the old one in FILE, and the time that is left
    /// is printed. Exits with 76 if the lock was lost: the lease does not stand any more, or the handle's
    /// deadline has passed, after which somebody else may have been there. Exits with 69 if the store did
    /// not decide: the old handle is good until its deadline, and trying again is fine.
    #[command(after_help = postscript())]
    Renew(RenewArgs),

    /// Free the lock of a handle.
    ///
    /// With --handle-file FILE is removed. Exits with 76 if the lock was not held by this handle any more;
    /// nobody else is touched.
    #[command(after_help = postscript())]
    Release(ReleaseArgs),

    /// Show who holds a lock, and the first ten who wait for it, in order (with --json all).
    #[command(after_help = postscript())]
    Status(StatusArgs),

    /// Show which locks are held, by name, and by whom.
    ///
    /// On several servers a lock that not all of them see alike is shown with how many do: it may be
    /// taken or freed right now, or be the rest of an attempt that failed, which ends by itself. Locks of other
    /// libraries are not shown, since any value could be one. A server is asked in many short steps,
    /// however many keys it has.
    #[command(after_help = postscript())]
    Ls(LsArgs),

    /// Show who waits for a lock, the first 1000 of them, in the order in which they are served.
    ///
    /// Locks that are files have no queue.
    #[command(after_help = postscript())]
    Waiters(WaitersArgs),

    /// Take a lock from its holder, who holds it alone.
    ///
    /// The holder is told with its next renewal, and a command under `run` is ended then (exit code 76).
    /// The lock stays shut until the lease would have ended, so that nobody enters beside it;
    /// --now frees it at once. Who did it, when and why is kept for 7 days, for `status`.
    ///
    /// --fence says whose lease is meant. On Redis a fence is shown from the first renewal on, at most a
    /// third of the TTL after the lock was taken. One that nobody renews, as `acquire` leaves it, ends by
    /// itself. On several servers a majority must carry it out; it may be repeated.
    ///
    /// Readers and those with permits cannot be broken: their leases end by themselves. Nor can locks that are
    /// files, since only its process can let go of one: end that process (`status` shows which).
    #[command(after_help = postscript())]
    Break(BreakArgs),

    /// Form a set of servers, before its first use.
    ///
    /// Writes on each server which servers make up the set, and its limits. Every server must
    /// answer, belong to no set yet, and hold no lock; unless all do, nothing is written.
    ///
    /// Without this, the first client forms the set once all servers have answered; but a server
    /// that was started less than the longest TTL and a second ago does not count then, since it
    /// may be one that forgot its locks. `init` lets all servers count at once: it is for new ones,
    /// and not for servers of a set in use that have just lost their data.
    #[command(after_help = postscript())]
    Init(InitArgs),

    /// Show the servers of a store, and which of them count; or change the set.
    ///
    /// A server does not count for the longest TTL and a second after it restarted without having
    /// all its data (durable ones have), was flushed, or had its clock stepped.
    ///
    /// Exits with 0 if a majority counts, and with 69 if not.
    #[command(after_help = postscript())]
    Members(MembersArgs),

    /// Find out what is wrong with a store, why it matters, and what to do about it.
    ///
    /// Checks each server and what they are to each other; or the folder of lock files. Green is well;
    /// yellow could be better, or is not known; red means that locks cannot be had, or are not what they
    /// promise to be.
    ///
    /// Nothing is changed anywhere: no lock is taken, no card written. Whether the user has a right is found
    /// out by commands that do nothing where it is there; what it lacks may stand in the server's ACL LOG.
    /// What it may not ask for is yellow and named. It takes a few seconds, also where servers do not
    /// answer.
    ///
    /// Exits with 0 if nothing is red, with 69 if no majority of the servers counts, else with 78.
    #[command(after_help = postscript())]
    Doctor(DoctorArgs),

    /// Measure what a store carries, as a program on this machine finds it.
    ///
    /// For each server the round trip; for the store how long it takes to take and free a lock, one
    /// at a time and many at once, to hand a lock over from one client to another, and to renew locks
    /// that are held. From that it says about how many locks the store carries. That is an estimate
    /// from this machine; where its own CPU was the limit, it says so.
    ///
    /// It can run beside others. Its locks have random names that begin with `leasehold-bench/`, and
    /// at its end, also after Ctrl-C, all of them are freed and removed. (Only who its clients were can
    /// be read for four minutes more, as of every client.) If it is killed, the locks end with their TTL,
    /// and their counters after a week. But it asks as fast as the store answers, with
    /// --in-flight locks at once, for --duration in all: meanwhile everybody else's answers come later,
    /// by about as much as the figures of many at once exceed those of one. `--in-flight 1` is gentle.
    ///
    /// What could not be measured is named with its reason. Exits with 0 if the store as a whole could
    /// be measured, though a server did not answer, and with 69 if there was no quorum.
    #[command(after_help = postscript())]
    Bench(BenchArgs),

    /// Compare a fence with the greatest one that was shown, as what a lock protects does.
    #[command(after_help = postscript())]
    Fence(FenceArgs),

    /// Print the completions for a shell.
    Completions {
        /// The shell they are for.
        shell: Shell,
    },

    /// Print the manual page, of the program or of one verb.
    Man {
        /// The verb, as `run` or `fence check`; without it the page of the program.
        verb: Vec<String>,
    },
}

impl Verb {
    /// Whether what the library reports on the way stands in the result.
    pub(crate) fn tells_all_by_itself(&self) -> bool {
        matches!(
            self,
            Self::Members(MembersArgs { change: None, .. }) | Self::Doctor(_)
        )
    }

    /// Whether the program's own messages are for programs.
    pub(crate) fn speaks_json(&self) -> bool {
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
            Self::Members(args) => args.json,
            Self::Bench(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Fence(args) => match &args.deed {
                FenceDeed::Check(args) => args.json,
            },
            Self::Elect(args) => args.json,
            _ => false,
        }
    }
}
