//! Conditional writes to S3.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::{blocks, page};

/// A server with the API of S3.
struct S3 {
    process: Child,
    address: String,
    /// Kept open: the server prints each request.
    _lines: Lines<BufReader<ChildStderr>>,
}

impl S3 {
    fn start() -> Self {
        let python = std::env::var_os("LEASEHOLD_TEST_PYTHON");
        let python = python.expect("LEASEHOLD_TEST_PYTHON, which `cargo xtask test` sets");
        let mut process = Command::new(python)
            .args(["-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = |line: String| Some(line.split_once("Running on ")?.1.to_owned());
        let found = lines.by_ref().map_while(Result::ok).find_map(address);
        Self {
            process,
            address: found.expect("an address"),
            _lines: lines,
        }
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A late holder that read the object before a later one wrote the same bytes, and one that comes afterwards.
const LATE_HOLDERS: &str = r#"
command curl -sSf --aws-sigv4 aws:amz:us-east-1:s3 --user "$AWS_KEY" -X PUT "$SERVER/bucket"
holder() { LEASEHOLD_FENCE=$1 put_fenced "$2" "$SERVER/bucket/report"; echo "$1: $?"; }
curl() {
    case " $* $paused " in *" --upload-file "*" yes "*) paused=no; holder 7 same >> log ;; esac
    command curl "$@"
}
echo a > same; echo b > other
holder 5 same > log
paused=yes holder 5 other > late
cat late >> log
holder 5 other >> log
holder 9 other >> log
cat log
"#;

#[test]
fn moto_s3_refuses_late_holders() {
    let page = page("fencing.md");
    let function = blocks(&page, "sh")[0];
    let (server, folder) = (S3::start(), tempfile::tempdir().unwrap());
    let output = Command::new("bash")
        .args(["-c", &format!("{function}\n{LATE_HOLDERS}")])
        .current_dir(folder.path())
        .env("AWS_REGION", "us-east-1")
        .env("AWS_KEY", "key:secret")
        .env("SERVER", &server.address)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stdout);
    assert!(
        log.ends_with("5: 0\n7: 0\n5: 76\n5: 76\n9: 0\n"),
        "{output:?}"
    );
}
