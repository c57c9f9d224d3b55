//! Pure: what the facts of a lock directory mean.

use leasehold_file::DirectoryFacts;

use crate::output::finding::Finding;
use crate::output::report::Report;

/// A file system with less room than this is nearly full: in bytes, and in files.
const ROOM_LEAST: (u64, u64) = (16 * 1024 * 1024, 1000);

/// All checks of a folder.
pub(super) fn report(facts: &DirectoryFacts) -> Report {
    Report {
        store: format!("files in {}", facts.path.display()),
        majority: None,
        checks: judge(facts),
        members: Vec::new(),
    }
}

fn judge(facts: &DirectoryFacts) -> Vec<Finding> {
    let mut findings = vec![folder(facts)];
    findings.extend(owner(facts));
    findings.push(file_system(facts));
    findings.push(fences(facts));
    if facts.usable.is_ok() {
        // Otherwise flock fails for the reason that the folder has.
        findings.extend(flock(facts));
    }
    findings.push(room(facts));
    findings.push(locks(facts));
    findings
}

fn folder(facts: &DirectoryFacts) -> Finding {
    let path = facts.path.display();
    match (&facts.usable, facts.exists) {
        (Ok(()), true) => Finding::green("folder", format!("{path} is usable")),
        (Ok(()), false) => Finding::green(
            "folder",
            format!("{path} does not exist; the first lock creates it"),
        ),
        (Err(error), _) => Finding::red(
            "folder",
            error.reason(),
            "no lock can be acquired",
            "give this user read and write access, or choose another folder with --store file:///folder",
        ),
    }
}

fn owner(facts: &DirectoryFacts) -> Option<Finding> {
    let (user, mode) = facts.owner?;
    let text = format!("user {user}, mode {mode:04o}");
    if mode & 0o022 == 0 {
        return Some(Finding::green("owner", text));
    }
    if mode & 0o002 != 0 && mode & 0o1000 == 0 {
        let path = facts.path.display();
        let why = "every user of this machine can delete lock files, and so take locks away";
        return Some(Finding::red(
            "owner",
            text,
            why,
            format!("chmod o-w {path}, or chmod +t {path}"),
        ));
    }
    Some(Finding::green(
        "owner",
        format!("{text}: shared with other users"),
    ))
}

fn file_system(facts: &DirectoryFacts) -> Finding {
    if facts.is_local {
        return Finding::green("file_system", &facts.file_system);
    }
    let text = format!("{}, not known to be local", facts.file_system);
    let why = "locks may exclude only processes of one machine, or none";
    let remedy = "use --store file:///folder on a local disk, or Redis servers";
    if facts.usable.is_ok() {
        return Finding::yellow("file_system", text, why, remedy);
    }
    Finding::red("file_system", text, why, remedy)
}

fn fences(facts: &DirectoryFacts) -> Finding {
    if facts.outlives_a_boot {
        return Finding::green("fences", "the counters are on a disk");
    }
    // That is fine: a reboot also ends all locks.
    let text = "the counters are in memory; after a reboot they continue from the wall clock";
    Finding::green("fences", text)
}

fn flock(facts: &DirectoryFacts) -> Option<Finding> {
    Some(match facts.flock.as_ref()? {
        Ok(()) => Finding::green("flock", "works"),
        Err(error) => Finding::red(
            "flock",
            error.reason(),
            "locks depend on it",
            "use --store file:///folder on another file system",
        ),
    })
}

fn room(facts: &DirectoryFacts) -> Finding {
    let (bytes, files) = match &facts.room {
        Ok(room) => *room,
        Err(error) => {
            let text = format!("unknown: {}", error.reason());
            return Finding::yellow(
                "room",
                text,
                "not checked",
                "check the folder with df and df -i",
            );
        }
    };
    let mut text = format!("{} MiB", bytes / (1024 * 1024));
    if files != u64::MAX {
        text += &format!(" and {files} files");
    }
    text += " free";
    let why = "a new lock needs a file, and each acquisition writes its fence";
    let remedy = "free some space on the file system";
    if bytes < 4096 || files == 0 {
        return Finding::red("room", text, why, remedy);
    }
    if bytes < ROOM_LEAST.0 || files < ROOM_LEAST.1 {
        return Finding::yellow("room", text, why, remedy);
    }
    Finding::green("room", text)
}

fn locks(facts: &DirectoryFacts) -> Finding {
    match &facts.locks {
        Ok((files, held)) if !facts.damaged.is_empty() => Finding::yellow(
            "locks",
            format!(
                "of {files} lock files, {held} held, these are damaged: {}",
                facts.damaged.join(", ")
            ),
            "these locks cannot be acquired",
            "while the lock is free, delete its file; the next fence then follows from the wall clock",
        ),
        Ok((1, held)) => Finding::green("locks", format!("1 lock file, {held} held")),
        Ok((files, held)) => Finding::green("locks", format!("{files} lock files, {held} held")),
        Err(error) => Finding::yellow(
            "locks",
            format!("unknown: {}", error.reason()),
            "a lock whose file cannot be read cannot be acquired",
            "give this user access to the file, or delete it while the lock is free",
        ),
    }
}

#[cfg(test)]
#[path = "doctor_tests.rs"]
mod tests;
