use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The wall clock of one server, which a test can step while the server runs. A library loaded into the
/// server adds an offset to every reading (`clock.c`).
#[derive(Debug)]
pub struct ServerClock {
    library: PathBuf,
    offset_path: PathBuf,
    offset_file: File,
    offset_micros: AtomicI64,
}

/// The message for a machine without a C compiler.
const INSTALL: &str = "cc is not installed, and this test needs it to build the library that steps \
     one server's clock: run `apt-get install gcc libc6-dev`, or `cargo xtask test`, which does it";

impl ServerClock {
    /// Builds the library in `dir`.
    pub(in crate::servers) fn build(dir: &Path) -> io::Result<Self> {
        let source = dir.join("clock.c");
        let library = dir.join("clock.so");
        fs::write(&source, include_str!("clock.c"))?;
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .args([&library, &source])
            .output()
            .map_err(|error| io::Error::new(error.kind(), format!("{INSTALL} ({error})")))?;
        if !built.status.success() {
            let said = String::from_utf8_lossy(&built.stderr);
            return Err(io::Error::other(format!("cc clock.c:\n{said}")));
        }
        let offset_path = dir.join("clock-offset");
        fs::write(&offset_path, 0_i64.to_ne_bytes())?;
        let offset_file = File::options().write(true).open(&offset_path)?;
        Ok(Self {
            library,
            offset_path,
            offset_file,
            offset_micros: AtomicI64::new(0),
        })
    }

    /// Returns what the server's environment must contain.
    pub(in crate::servers) fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [
            ("LD_PRELOAD", self.library.clone()),
            ("LEASEHOLD_CLOCK_FILE", self.offset_path.clone()),
        ]
    }

    /// Sets it forward by `span`, from one reading to the next.
    pub fn forward(&self, span: Duration) {
        self.step(micros(span));
    }

    /// Sets it back by `span`, from one reading to the next.
    pub fn back(&self, span: Duration) {
        self.step(-micros(span));
    }

    /// Sets the clock right again, which is a step, too.
    pub fn set_right(&self) {
        self.step(-self.offset_micros.load(Ordering::Relaxed));
    }

    fn step(&self, by: i64) {
        let offset = self.offset_micros.fetch_add(by, Ordering::Relaxed) + by;
        let written = self.offset_file.write_all_at(&offset.to_ne_bytes(), 0);
        written.unwrap_or_else(|error| panic!("{}: {error}", self.offset_path.display()));
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or_else(|_| panic!("a step of {span:?}"))
}
