//! Finds the files that any process holds by `flock`, without touching them.
//!
//! The only way to ask the kernel about a `flock` is to try to take it. A probe that takes the lock, even
//! for a moment, makes another process's attempt fail. `/proc/locks` shows the locks without a probe. It
//! leaves out the processes of other PID namespaces; the ones of those that use this library are found by
//! their records.
//!
//! The kernel returns that list one page at a time. If the list changes between two pages, an entry can
//! appear twice or not at all. So this module reads a list of several pages three times. A lock is there
//! if any of the readings shows it, and a process that appears more than once counts once.
//!
//! If the lock on a file is a lock on a byte, as on macOS, the kernel shows one holder without a probe.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use leasehold::Mode;
use nix::libc;

use crate::kernel::whole_lock;

/// The locks that `flock(2)` had granted when it was read.
#[derive(Debug)]
pub(crate) struct KernelLocks {
    granted: HashSet<Granted>,
    mounts: Vec<Mount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Granted {
    mode: Mode,
    /// As this process sees it: another number where the holder has a PID namespace of its own.
    pid: u64,
    device: Device,
    inode: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mount {
    id: u64,
    device: Device,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Device {
    major: u64,
    minor: u64,
}

/// The number of processes that hold one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) exclusive: usize,
    pub(crate) shared: usize,
}

impl KernelLocks {
    /// Reads the kernel's list. Without `/proc` there is none, and only our own holders are known.
    pub(crate) fn read() -> Self {
        let mut granted = HashSet::new();
        let readings = if whole_lock::IS_FLOCK { READINGS } else { 0 };
        for _ in 0..readings {
            let Ok(list) = List::read() else { break };
            granted.extend(parse_locks(&list.text));
            if list.is_one_page {
                break;
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self {
            granted,
            mounts: parse_mounts(&mounts),
        }
    }

    /// Returns how many processes hold `file`. It may leave some out, but not all.
    pub(crate) fn on(&self, file: &File) -> io::Result<Holding> {
        if !whole_lock::IS_FLOCK {
            let mode = whole_lock::mode_of_byte(file)?;
            return Ok(Holding {
                exclusive: usize::from(mode == Some(Mode::Exclusive)),
                shared: usize::from(mode == Some(Mode::Shared)),
            });
        }
        let metadata = file.metadata()?;
        let mut holding = Holding::default();
        let same_inode = |lock: &&Granted| lock.inode == metadata.ino();
        if !self.granted.iter().any(|lock| same_inode(&lock)) {
            return Ok(holding);
        }
        let device = self.device(file, metadata.dev());
        let on_file = self.granted.iter().filter(same_inode);
        for lock in on_file.filter(|lock| lock.device == device) {
            match lock.mode {
                Mode::Exclusive => holding.exclusive += 1,
                // Each permit is a lock within a shared one.
                Mode::Shared | Mode::Permit(_) => holding.shared += 1,
            }
        }
        Ok(holding)
    }

    /// Returns the device as `/proc/locks` gives it: that of the whole file system. `st_dev` can be
    /// another one (a subvolume of btrfs has its own), so the mount comes first.
    fn device(&self, file: &File, st_dev: u64) -> Device {
        let description = format!("/proc/self/fdinfo/{}", file.as_raw_fd());
        let mount = fs::read_to_string(description)
            .ok()
            .and_then(|text| parse_mount_id(&text))
            .and_then(|id| self.mounts.iter().find(|mount| mount.id == id));
        mount.map_or_else(
            || Device {
                major: libc::major(st_dev as libc::dev_t) as u64,
                minor: libc::minor(st_dev as libc::dev_t) as u64,
            },
            |mount| mount.device,
        )
    }
}

/// The content of `/proc/locks`.
struct List {
    text: String,
    /// All of it came in one answer, at one moment.
    is_one_page: bool,
}

impl List {
    fn read() -> io::Result<Self> {
        let mut file = File::open("/proc/locks")?;
        let mut bytes = Vec::new();
        let mut answers = 0;
        // An answer is as long as the buffer, but no longer than a page, or one entry.
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => bytes.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            answers += 1;
        }
        Ok(Self {
            text: String::from_utf8_lossy(&bytes).into_owned(),
            is_one_page: answers <= 1,
        })
    }
}

const READINGS: usize = 3;

/// Parses lines like `3: FLOCK ADVISORY WRITE 7138 fe:00:10027034 0 EOF`, with the device in
/// hexadecimal (`fs/locks.c`, `lock_get_status`). The second word is `->` for a lock that still
/// waits.
fn parse_locks(text: &str) -> impl Iterator<Item = Granted> {
    text.lines().filter_map(parse_lock)
}

fn parse_lock(line: &str) -> Option<Granted> {
    let mut words = line.split_ascii_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None;
    }
    let mode = match words.nth(1)? {
        "WRITE" => Mode::Exclusive,
        "READ" => Mode::Shared,
        _ => return None,
    };
    let pid = words.next()?.parse().ok()?;
    let mut place = words.next()?.split(':');
    let mut hexadecimal = || u64::from_str_radix(place.next()?, 16).ok();
    let device = Device {
        major: hexadecimal()?,
        minor: hexadecimal()?,
    };
    Some(Granted {
        mode,
        pid,
        device,
        inode: place.next()?.parse().ok()?,
    })
}

/// Parses lines like `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw`, with the device in decimal
/// (proc(5)).
fn parse_mounts(text: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let id = words.next()?.parse().ok()?;
        let (major, minor) = words.nth(1)?.split_once(':')?;
        Some(Mount {
            id,
            device: Device {
                major: major.parse().ok()?,
                minor: minor.parse().ok()?,
            },
        })
    };
    text.lines().filter_map(mount).collect()
}

fn parse_mount_id(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granted_flocks_are_counted_and_nothing_else() {
        let text = "1: OFDLCK ADVISORY  WRITE -1 fe:00:10 2048 2048\n\
                    2: FLOCK  ADVISORY  WRITE 7138 fe:01:10027034 0 EOF\n\
                    2: -> FLOCK  ADVISORY  WRITE 7139 fe:01:10027034 0 EOF\n\
                    3: POSIX  ADVISORY  READ 7140 fe:01:11 0 EOF\n\
                    4: FLOCK  ADVISORY  READ 7141 00:2f:12 0 EOF\n\
                    5: LEASE  ACTIVE    READ 7142 00:2f:13 0 EOF\n\
                    garbage\n";
        let lock = |mode, pid, major, minor, inode| Granted {
            mode,
            pid,
            device: Device { major, minor },
            inode,
        };
        assert_eq!(
            parse_locks(text).collect::<Vec<_>>(),
            [
                lock(Mode::Exclusive, 7138, 254, 1, 10_027_034),
                lock(Mode::Shared, 7141, 0, 47, 12)
            ]
        );
    }

    #[test]
    fn mounts_are_read_with_their_device() {
        let text = "22 27 0:21 / /proc rw,relatime - proc proc rw\n\
                    27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n";
        let mounts = parse_mounts(text);
        let device = Device {
            major: 254,
            minor: 0,
        };
        assert_eq!(mounts[1], Mount { id: 27, device });
        assert_eq!(mounts.len(), 2);
        assert_eq!(
            parse_mount_id("pos:\t0\nflags:\t02\nmnt_id:\t27\n"),
            Some(27)
        );
    }

    #[test]
    fn long_lock_list_is_read_completely() {
        let dir = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..300)
            .map(|number| {
                let file = File::create(dir.path().join(number.to_string())).unwrap();
                file.lock().unwrap();
                file
            })
            .collect();
        let kernel = KernelLocks::read();
        let held = |file: &&File| kernel.on(file).unwrap().exclusive == 1;
        assert_eq!(files.iter().filter(held).count(), files.len());
    }

    #[test]
    fn the_running_kernel_is_understood() {
        let place = tempfile::NamedTempFile::new().unwrap();
        let holding = || KernelLocks::read().on(place.as_file()).unwrap();
        let (one, two) = (place.reopen().unwrap(), place.reopen().unwrap());
        assert_eq!(holding(), Holding::default());
        one.lock_shared().unwrap();
        two.lock_shared().unwrap();
        let shared = Holding {
            exclusive: 0,
            shared: 1,
        };
        assert_eq!(holding(), shared, "one process");
        two.unlock().unwrap();
        one.lock().unwrap();
        let exclusive = Holding {
            exclusive: 1,
            shared: 0,
        };
        assert_eq!(holding(), exclusive);
    }
}
