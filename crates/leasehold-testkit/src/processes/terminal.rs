use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::{Winsize, openpty};

/// Starts `command` on a terminal of its own, of `size` (columns and rows) if that is given. Write to the
/// returned file what the user types, and read the terminal's output with [`written_on`].
///
/// # Errors
///
/// If no terminal is available, or `command` cannot be started.
pub fn start_on_terminal(
    command: &mut Command,
    size: Option<(u16, u16)>,
) -> io::Result<(Child, File)> {
    let window = size.map(|(columns, rows)| Winsize {
        ws_col: columns,
        ws_row: rows,
        ws_xpixel: 0,
        ws_ypixel: 0,
    });
    let pty = openpty(window.as_ref(), None)?;
    let side = |fd: &OwnedFd| fd.try_clone().map(Stdio::from);
    let child = command
        .stdin(side(&pty.slave)?)
        .stdout(side(&pty.slave)?)
        .stderr(side(&pty.slave)?)
        .spawn()?;
    fcntl(&pty.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((child, pty.master.into()))
}

/// Returns what was written on the terminal since the last call. It does not wait for more.
pub fn written_on(terminal: &mut File) -> Vec<u8> {
    let mut written = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match terminal.read(&mut chunk) {
            Ok(0) => return written,
            Ok(length) => written.extend(&chunk[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // There is nothing new, or no process has the terminal open.
            Err(_) => return written,
        }
    }
}
