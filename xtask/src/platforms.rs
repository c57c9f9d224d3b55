//! Builds and links programs for systems that run no tests here.

use std::fs;
use std::path::{Path, PathBuf};

use crate::package::{Wheels, add_target};
use crate::step::{step, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// A system, and what is built for it.
struct System {
    target: &'static str,
    builds: &'static [&'static str],
    /// The program that the last build links.
    file: &'static str,
}

const SYSTEMS: [System; 2] = [
    System {
        target: "aarch64-apple-darwin",
        builds: &["--package leasehold-cli --bin leasehold"],
        file: "leasehold",
    },
    // The file store and the command are for Linux and macOS. The testkit is for authors of stores.
    System {
        target: "x86_64-pc-windows-gnu",
        builds: &[
            "--package leasehold-testkit --lib",
            "--package leasehold-stores --example any_store --no-default-features \
             --features etcd,postgres,redis,ring,zookeeper",
        ],
        file: "examples/any_store.exe",
    },
];

/// Builds the command for macOS, and an example of the libraries for Windows. Tests on Linux what can be tested there.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let wheels = Wheels::of(workspace);
    step("tools", || {
        wheels.install()?;
        SYSTEMS.iter().try_for_each(|it| add_target(it.target))
    })?;
    let frameworks = write_frameworks(workspace)?;
    for system in SYSTEMS {
        step(system.target, || {
            build(workspace, &wheels, &system, &frameworks)
        })?;
    }
    step("lock files as on macOS", || test_lock_files(workspace))
}

/// Runs the tests of lock files in the form that they have on macOS.
fn test_lock_files(workspace: &Workspace) -> Result<(), String> {
    // With the features of all tests, so that what CI has built for these is not built again.
    let selected = "--workspace --test contract --test it".split(' ');
    let mut programs = suite::build(workspace, &selected.collect::<Vec<_>>())?;
    programs.retain(|program| program.folder.ends_with("crates/leasehold-file"));
    if programs.len() != 2 {
        return Err("leasehold-file has other test programs than contract and it".into());
    }
    for program in programs {
        let mut test = program.call();
        test.args(NEED_LINUX.iter().flat_map(|name| ["--skip", name]));
        test.env("LEASEHOLD_TEST_BYTE_LOCK", "1");
        // The suite runs random programs for as long as it says.
        succeed(test.env_remove(suite::PROGRAMS_SECONDS))?;
    }
    Ok(())
}

/// Tests that take the lock by `flock`, which Linux alone keeps apart from locks on bytes, or need notifications.
const NEED_LINUX: [&str; 10] = [
    "contention::removed_file_never_causes_two_holders",
    "crash::inherited_descriptor_keeps_the_lock",
    "flock::a_lock_of_ours_excludes_flock",
    "flock::flock_command_excludes_ours_and_is_shown",
    "holders::dead_holder_record_is_not_shown",
    "modes::downgrade::downgraded_holder_admits_readers_only",
    "modes::downgrade::no_writer_gets_in_between",
    "records::expired_records_are_removed_gradually",
    "room::attempt_retries_when_its_room_was_taken",
    "waiting::",
];

fn build(
    workspace: &Workspace,
    wheels: &Wheels,
    system: &System,
    frameworks: &Path,
) -> Result<(), String> {
    let built = workspace
        .target()
        .join(system.target)
        .join("debug")
        .join(system.file);
    // So that the file is the one of this build.
    let _ = fs::remove_file(&built);
    let mut flags = "-D warnings".to_owned();
    if system.target.contains("apple") {
        flags += &format!(" -C link-arg=-F{}", frameworks.display());
    }
    for packages in system.builds {
        let mut build = wheels.cargo_zigbuild(workspace, "zigbuild --locked");
        build
            .args(packages.split_whitespace())
            .args(["--target", system.target])
            // The tests optimize it; nothing runs these programs.
            .args(["--config", "profile.dev.package.tokio.opt-level=0"])
            .env("RUSTFLAGS", &flags)
            // For the size on the disk.
            .env("CARGO_PROFILE_DEV_DEBUG", "none");
        succeed(&mut build)?;
    }
    let size = fs::metadata(&built).map_err(|error| format!("{}: {error}", built.display()))?;
    println!("{}: {} KiB", built.display(), size.len() / 1024);
    Ok(())
}

/// Writes what the linker must know of the frameworks of macOS, and returns their folder. Zig has the C library of
/// macOS, but no frameworks.
fn write_frameworks(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = workspace.target().join("package-tools/frameworks");
    for (name, symbols) in FRAMEWORKS {
        let framework = folder.join(format!("{name}.framework"));
        let file = framework.join(format!("{name}.tbd"));
        let symbols: Vec<String> = symbols.iter().map(|it| format!("_{it}")).collect();
        let text = format!(
            "--- !tapi-tbd\n\
             tbd-version: 4\n\
             targets: [ arm64-macos ]\n\
             install-name: '/System/Library/Frameworks/{name}.framework/Versions/A/{name}'\n\
             exports:\n  - targets: [ arm64-macos ]\n    symbols: [ {} ]\n...\n",
            symbols.join(", ")
        );
        fs::create_dir_all(&framework)
            .and_then(|()| fs::write(&file, text))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(folder)
}

/// The frameworks that the command uses on macOS for the authorities of TLS and the name of the user, with the symbols
/// it needs of them. If the linker misses one, add it here.
const FRAMEWORKS: [(&str, &[&str]); 3] = [
    (
        "CoreFoundation",
        &[
            "CFArrayCreate",
            "CFArrayGetCount",
            "CFArrayGetValueAtIndex",
            "CFDataGetBytePtr",
            "CFDataGetLength",
            "CFDictionaryGetValueIfPresent",
            "CFEqual",
            "CFNumberGetValue",
            "CFRelease",
            "CFRetain",
            "CFStringCreateWithBytesNoCopy",
            "CFStringGetBytes",
            "CFStringGetCStringPtr",
            "CFStringGetLength",
            "kCFAllocatorDefault",
            "kCFAllocatorNull",
            "kCFTypeArrayCallBacks",
        ],
    ),
    (
        "Security",
        &[
            "SecCertificateCopyData",
            "SecCopyErrorMessageString",
            "SecTrustSettingsCopyCertificates",
            "SecTrustSettingsCopyTrustSettings",
        ],
    ),
    ("SystemConfiguration", &[]),
];
