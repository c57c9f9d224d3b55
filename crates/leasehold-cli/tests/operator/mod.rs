//! Follows a section of a runbook, and does to the servers of the test what the section does to hosts.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::thread;

use crate::session::{console_blocks, run_session, script, values};

/// The servers of a test.
pub(crate) struct Site {
    /// What the shell of the session exports.
    pub(crate) variables: Vec<(&'static str, String)>,
    /// The address of each server, and how the page names it.
    pub(crate) names: Vec<(String, String)>,
}

impl Site {
    /// Runs the console examples of the section `heading` of `page`, and compares the session with it. `act` gets what
    /// the section does by `ssh`: the host, and the command.
    pub(crate) fn follow(&self, page: &str, heading: &str, mut act: impl FnMut(&str, &str) + Send) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runbooks");
        let text = fs::read_to_string(path.join(page)).unwrap();
        let mut sections = text.split("\n## ");
        let section = sections.find(|section| section.starts_with(heading));
        let shown = console_blocks(section.expect("the section"));
        assert!(!shown.is_empty(), "{heading} has no console examples");

        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        write_ssh(&folder.path().join("bin"), address.port());
        let printed = thread::scope(|scope| {
            scope.spawn(move || {
                for stream in listener.incoming() {
                    let stream = stream.unwrap();
                    let mut line = String::new();
                    BufReader::new(&stream).read_line(&mut line).unwrap();
                    match line.trim().split_once(' ') {
                        Some((host, command)) => act(host, command),
                        None => break,
                    }
                }
            });
            let printed = run_session(&self.script(&shown), folder.path());
            // A connection without a command ends the thread.
            TcpStream::connect(address).unwrap();
            printed
        });
        let printed = self.names.iter().fold(printed, |printed, (address, name)| {
            printed.replace(address, name)
        });
        let values = values();
        snapbox::Assert::new().eq(values.redact(&printed), values.redact(&shown));
    }

    fn script(&self, shown: &str) -> String {
        let exports = self.variables.iter();
        let exports = exports.map(|(name, value)| format!("export {name}='{value}'\n"));
        exports.collect::<String>() + &script(shown, &[], "")
    }
}

/// Writes a program `ssh` that passes its arguments to `port`, and returns when the connection ends.
fn write_ssh(bin: &Path, port: u16) {
    fs::create_dir(bin).unwrap();
    let ssh = bin.join("ssh");
    let text =
        format!("#!/bin/bash\nexec 3<> /dev/tcp/127.0.0.1/{port}\necho \"$*\" >&3\ncat <&3\n");
    fs::write(&ssh, text).unwrap();
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
}
