use std::os::unix::process::ExitStatusExt as _;
use std::process::{self, ExitStatus};

use leasehold::member::MemberFailure;
use leasehold::{Error, ErrorKind};
use nix::errno::Errno;
use nix::sys::signal::Signal;

/// How the program ends. Names every exit code of the program itself.
///
/// The numbers from 64 to 78 are those of `sysexits.h`, the ones from 125 on those of env(1) and
/// timeout(1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExitCode {
    code: u8,
    /// The program ends by this signal, and a shell shows `code`.
    signal: Option<Signal>,
}

impl ExitCode {
    pub(crate) const SUCCESS: Self = Self::of(0);
    /// `status --check`: the lock is free.
    pub(crate) const FREE: Self = Self::of(1);
    /// `status --check`: another process holds the lock.
    pub(crate) const HELD_BY_ANOTHER: Self = Self::of(3);
    pub(crate) const USAGE: Self = Self::of(64);
    pub(crate) const CORRUPT: Self = Self::of(65);
    pub(crate) const UNREACHABLE: Self = Self::of(69);
    pub(crate) const IO: Self = Self::of(74);
    pub(crate) const BUSY: Self = Self::of(75);
    pub(crate) const LOST: Self = Self::of(76);
    pub(crate) const REFUSED: Self = Self::of(77);
    /// A check of `doctor` is red, the store is not initialized, or the configuration of this client is not that of its
    /// quorum.
    pub(crate) const UNSOUND: Self = Self::of(78);
    pub(crate) const FAILURE: Self = Self::of(125);
    pub(crate) const NOT_EXECUTABLE: Self = Self::of(126);
    pub(crate) const NOT_FOUND: Self = Self::of(127);

    /// The exit code of a command, or one that the caller chose.
    pub(crate) const fn of(code: u8) -> Self {
        Self { code, signal: None }
    }

    /// The end of a program that signal n ended. A shell shows 128 + n.
    pub(crate) fn of_signal(signal: i32) -> Self {
        Self {
            code: u8::try_from(128 + signal).unwrap_or(u8::MAX),
            signal: ENDING.into_iter().find(|it| *it as i32 == signal),
        }
    }

    /// The code of a command that ended with `status`.
    pub(crate) fn of_command(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::of(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, Some(signal)) => Self::of_signal(signal),
            (None, None) => Self::FAILURE,
        }
    }

    /// The code of a command that could not be started.
    pub(crate) fn of_start(errno: Errno) -> Self {
        match errno {
            Errno::ENOENT => Self::NOT_FOUND,
            // The system has no room for another process; the command is fine.
            Errno::EAGAIN | Errno::ENOMEM | Errno::EMFILE | Errno::ENFILE => Self::FAILURE,
            _ => Self::NOT_EXECUTABLE,
        }
    }

    /// The code for this kind of error.
    pub(crate) fn of_error(error: &Error) -> Self {
        match error.kind() {
            // The servers refuse this client's list or limits. Its arguments may well be right.
            ErrorKind::InvalidInput if !error.members().is_empty() => Self::UNSOUND,
            ErrorKind::NotInitialized | ErrorKind::Misconfigured => Self::UNSOUND,
            ErrorKind::InvalidInput | ErrorKind::Unsupported | ErrorKind::PermitsDiffer => {
                Self::USAGE
            }
            ErrorKind::Busy => Self::BUSY,
            ErrorKind::NoQuorum => Self::of_members(error),
            ErrorKind::Unreachable | ErrorKind::Untrusted | ErrorKind::InvalidResponse => {
                Self::UNREACHABLE
            }
            ErrorKind::Refused => Self::REFUSED,
            ErrorKind::IncompatibleKey | ErrorKind::Corrupt => Self::CORRUPT,
            ErrorKind::Io => Self::IO,
            // A client with an outdated fence has lost its lock.
            ErrorKind::Lost | ErrorKind::Fenced => Self::LOST,
            _ => Self::FAILURE,
        }
    }

    /// The code for a missing quorum. If all failed members failed in the same way (for example a
    /// wrong password), the code of that failure. Another quorum configuration has its own code, because
    /// waiting does not help.
    fn of_members(error: &Error) -> Self {
        let differs = |m: &MemberFailure| m.error.kind() == ErrorKind::Misconfigured;
        if error.members().iter().any(differs) {
            return Self::UNSOUND;
        }
        let mut codes = error.members().iter().map(|m| Self::of_error(&m.error));
        match codes.next() {
            Some(first) if codes.all(|code| code == first) => first,
            _ => Self::UNREACHABLE,
        }
    }

    pub(crate) const fn get(self) -> u8 {
        self.code
    }

    /// The signal that ends the program.
    pub(crate) const fn signal(self) -> Option<Signal> {
        self.signal
    }
}

/// The signals that ask a program to end.
pub(crate) const ENDING: [Signal; 4] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
];

impl From<ExitCode> for process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::member::MemberId;

    fn no_quorum(kinds: &[ErrorKind]) -> Error {
        let members = kinds
            .iter()
            .map(|kind| MemberFailure::new(MemberId::new("m"), Error::new(*kind, "failed")))
            .collect();
        Error::new(ErrorKind::NoQuorum, "no quorum").with_members(members)
    }

    #[test]
    fn each_sort_of_error_has_its_code() {
        let code = |kind| ExitCode::of_error(&Error::new(kind, "failed")).get();
        assert_eq!(code(ErrorKind::InvalidInput), 64);
        assert_eq!(
            code(ErrorKind::PermitsDiffer),
            64,
            "another number of permits would work"
        );
        assert_eq!(code(ErrorKind::Corrupt), 65);
        assert_eq!(code(ErrorKind::IncompatibleKey), 65);
        assert_eq!(code(ErrorKind::Unreachable), 69);
        assert_eq!(code(ErrorKind::Untrusted), 69);
        assert_eq!(code(ErrorKind::Io), 74);
        assert_eq!(code(ErrorKind::Busy), 75);
        assert_eq!(code(ErrorKind::Lost), 76);
        assert_eq!(code(ErrorKind::Refused), 77);
        assert_eq!(code(ErrorKind::Closed), 125);
        assert_eq!(code(ErrorKind::Fenced), 76);
        assert_eq!(code(ErrorKind::NotInitialized), 78);
        assert_eq!(code(ErrorKind::Misconfigured), 78);
    }

    #[test]
    fn uniform_quorum_failure_has_that_code() {
        use ErrorKind::{Misconfigured, Refused, Unreachable, Untrusted};
        let code = |kinds: &[ErrorKind]| ExitCode::of_error(&no_quorum(kinds));
        assert_eq!(code(&[Refused, Refused]), ExitCode::REFUSED);
        assert_eq!(code(&[Refused, Unreachable]), ExitCode::UNREACHABLE);
        assert_eq!(code(&[]), ExitCode::UNREACHABLE);
        assert_eq!(code(&[Untrusted, Untrusted]), ExitCode::UNREACHABLE);
        assert_eq!(code(&[Unreachable, Misconfigured]), ExitCode::UNSOUND);
    }

    #[test]
    fn the_commands_end_becomes_the_programs_own() {
        let code = |raw| ExitCode::of_command(ExitStatus::from_raw(raw)).get();
        assert_eq!(code(0), 0);
        assert_eq!(code(200 << 8), 200);
        assert_eq!(code(15), 143);
        assert_eq!(code(64), 192, "real-time signals too");
        assert_eq!(code(11 | 0x80), 139, "with a core dump too");
        let signal = |raw| ExitCode::of_command(ExitStatus::from_raw(raw)).signal();
        assert_eq!(signal(15), Some(Signal::SIGTERM));
        assert_eq!(signal(143 << 8), None, "it caught the signal");
        assert_eq!(signal(9), None, "it was not asked to end");
    }

    #[test]
    fn unstartable_command_differs_from_exhausted_machine() {
        assert_eq!(ExitCode::of_start(Errno::ENOENT), ExitCode::NOT_FOUND);
        assert_eq!(ExitCode::of_start(Errno::EACCES), ExitCode::NOT_EXECUTABLE);
        assert_eq!(ExitCode::of_start(Errno::ENOTDIR), ExitCode::NOT_EXECUTABLE);
        assert_eq!(ExitCode::of_start(Errno::EAGAIN), ExitCode::FAILURE);
    }
}
