//! The file systems of Linux.

use nix::sys::statfs::Statfs;

/// The number that `statfs(2)` gives to a kind of file system.
pub(super) type FileSystemType = u32;

pub(super) fn of(found: &Statfs) -> FileSystemType {
    // The type of the field differs between platforms; each number fits 32 bits.
    found.filesystem_type().0 as u32
}

/// Returns the name if the file system is local.
pub(super) fn local_name(kind: FileSystemType) -> Option<&'static str> {
    name_in(LOCAL, kind)
}

/// Returns what to call a file system that is not known to be local.
pub(super) fn other_name(kind: FileSystemType) -> String {
    let unknown = || format!("a file system of the unknown type {kind:#x}");
    name_in(NOT_LOCAL, kind).map_or_else(unknown, str::to_owned)
}

fn name_in(table: &[(u32, &'static str)], kind: FileSystemType) -> Option<&'static str> {
    let (_, name) = table.iter().find(|(number, _)| *number == kind)?;
    Some(name)
}

/// The numbers are those of `linux/magic.h`, or of the file system's own source where it is not
/// listed there. ext2, ext3 and ext4 share one.
const LOCAL: &[(u32, &str)] = &[
    (0x0000_ef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x8584_58f6, "ramfs"),
    (0x794c_7630, "overlayfs"),
    (0x2fc1_2fc1, "zfs"),
    (0xf2f5_2010, "f2fs"),
    (0xca45_1a4e, "bcachefs"),
    (0x3153_464a, "jfs"),
    (0x5265_4973, "reiserfs"),
    (0x0000_3434, "nilfs2"),
    (0x2405_1905, "ubifs"),
];

/// Only for the message: every file system that is not in [`LOCAL`] is refused.
const NOT_LOCAL: &[(u32, &str)] = &[
    (0x0000_6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0000_517b, "SMB"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "AFS"),
    (0x0bd0_0bd0, "Lustre"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x786f_4256, "vboxsf"),
    (0x0000_9fa0, "procfs"),
    (0x6265_6572, "sysfs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
    (0x0000_4d44, "FAT"),
    (0x2011_bab0, "exFAT"),
    (0x5346_544e, "NTFS"),
    (0x7366_746e, "NTFS"),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use leasehold::{Error, ErrorKind};

    use super::super::FileSystem;
    use super::*;

    fn verdict(kind: FileSystemType) -> Result<(), Error> {
        FileSystem { kind }.require_local(Path::new("/srv/locks"))
    }

    #[test]
    fn local_file_systems_are_accepted() {
        for (magic, name) in LOCAL {
            assert!(verdict(*magic).is_ok(), "{name}");
        }
    }

    #[test]
    fn other_file_systems_are_refused_by_name() {
        for (magic, name) in NOT_LOCAL {
            let error = verdict(*magic).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = error.to_string();
            assert!(text.contains("/srv/locks"), "{text}");
            assert!(
                text.contains(name) && text.contains("?unsafe_fs=1"),
                "{text}"
            );
        }
        let unknown = verdict(0xdead_beef).unwrap_err().to_string();
        assert!(unknown.contains("unknown type 0xdeadbeef"), "{unknown}");
    }

    #[test]
    fn the_numbers_are_those_of_the_kernel_headers() {
        use nix::sys::statfs as kernel;
        for (found, name) in [
            (kernel::EXT4_SUPER_MAGIC, "ext4"),
            (kernel::XFS_SUPER_MAGIC, "xfs"),
            (kernel::BTRFS_SUPER_MAGIC, "btrfs"),
            (kernel::TMPFS_MAGIC, "tmpfs"),
            (kernel::OVERLAYFS_SUPER_MAGIC, "overlayfs"),
            (kernel::F2FS_SUPER_MAGIC, "f2fs"),
            (kernel::NFS_SUPER_MAGIC, "NFS"),
            (kernel::FUSE_SUPER_MAGIC, "FUSE"),
            (kernel::PROC_SUPER_MAGIC, "procfs"),
        ] {
            assert_eq!(
                FileSystem {
                    kind: found.0 as u32
                }
                .name(),
                name
            );
        }
    }

    #[test]
    fn the_running_kernel_agrees() {
        let proc = FileSystem::of(Path::new("/proc")).unwrap();
        assert_eq!(proc.name(), "procfs");
    }

    #[test]
    fn memory_forgets_its_counters() {
        assert!(!FileSystem { kind: 0x0102_1994 }.outlives_a_boot());
        assert!(FileSystem { kind: 0xef53 }.outlives_a_boot());
    }
}
