//! Passwords from files and from the environment, and who gets to see them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use leasehold_testkit::servers::RedisServer;

use crate::support::harness::Sandbox;
use crate::support::program::sh;

const PASSWORD: &str = "s%c r@t:/?";

fn server() -> RedisServer {
    RedisServer::builder()
        .directive("requirepass", &format!("\"{PASSWORD}\""))
        .start()
}

fn place(server: &RedisServer) -> String {
    format!("127.0.0.1:{}", server.port())
}

/// The password in the form of a URL.
const ENCODED: &str = "s%25c%20r%40t%3A%2F%3F";

#[test]
fn password_comes_from_variable_or_file() {
    let server = server();
    let bare = Sandbox::on(&[format!("redis://{}", place(&server))]);
    bare.run("run x true").fails(77, &["asks for a password"]);
    let given = bare.start_with(("LEASEHOLD_PASSWORD", PASSWORD), "run x true");
    given.wait().succeeds();
    fs::write(bare.path("password"), format!("{PASSWORD}\n")).unwrap();
    let url = format!(
        "{}?password_file={}",
        bare.store(),
        bare.path("password").display()
    );
    let filed = Sandbox::on(&[url]);
    filed.run("run x true").succeeds();
    filed.run("status x").succeeds();
    filed.run("doctor").succeeds();
    // The password of the address comes first.
    let own = Sandbox::on(&[format!("redis://:{ENCODED}@{}", place(&server))]);
    let run = own.start_with(("LEASEHOLD_PASSWORD", "wrong"), "run x true");
    run.wait().succeeds();
}

#[test]
fn command_does_not_get_the_password_unless_asked() {
    let server = server();
    let place = place(&server);
    let show = "echo \"$LEASEHOLD_STORE;$LEASEHOLD_PASSWORD\"";
    let own = Sandbox::on(&[format!("redis://:{ENCODED}@{place}")]);
    let store = own.store().to_owned();
    assert_eq!(own.run(&sh("run x", show)).succeeds().stdout, "withheld;\n");
    let passed = own.run(&sh("run --pass-store x", show)).succeeds();
    assert_eq!(passed.stdout, format!("{store};\n"));
    let bare = Sandbox::on(&[format!("redis://{place}")]);
    let with = |args: &str| {
        bare.start_with(("LEASEHOLD_PASSWORD", PASSWORD), &sh(args, show))
            .wait()
    };
    assert_eq!(with("run x").succeeds().stdout, "withheld;\n");
    assert_eq!(with("once pay/1").succeeds().stdout, "withheld;\n");
    let passed = with("run --pass-store x").succeeds();
    assert_eq!(passed.stdout, format!("redis://{place};{PASSWORD}\n"));
}

#[test]
fn nested_run_without_the_password_says_what_to_do() {
    let server = server();
    let own = Sandbox::on(&[format!("redis://:{ENCODED}@{}", place(&server))]);
    let nested = "\"$LEASEHOLD\" run --nested x -- echo inner";
    own.run(&sh("run x", nested))
        .fails(64, &["password_file=FILE", "--pass-store"]);
    let passed = own.run(&sh("run --pass-store x", nested)).succeeds();
    assert_eq!(passed.stdout, "inner\n");
    fs::write(own.path("password"), PASSWORD).unwrap();
    let file = own.path("password").display().to_string();
    let filed = Sandbox::on(&[format!("redis://{}?password_file={file}", place(&server))]);
    let ran = filed.run(&sh("run x", nested)).succeeds();
    assert_eq!(ran.stdout, "inner\n");
}

#[test]
fn password_that_others_see_is_warned_of() {
    let server = server();
    let sandbox = Sandbox::new();
    let url = format!("redis://:{ENCODED}@{}", place(&server));
    let warned = sandbox.run(&["status", "--store", &url, "x"]).succeeds();
    assert!(warned.stderr.contains("list of processes"), "{warned:?}");
    assert!(
        !warned.stderr.contains(ENCODED) && !warned.stderr.contains(PASSWORD),
        "{warned:?}"
    );
    // The folder of a sandbox is its owner's alone.
    let folder = tempfile::tempdir().unwrap();
    let chmod = |path: &std::path::Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(folder.path(), 0o755);
    let file = folder.path().join("password");
    fs::write(&file, PASSWORD).unwrap();
    let filed = Sandbox::on(&[format!(
        "redis://{}?password_file={}",
        place(&server),
        file.display()
    )]);
    for (mode, is_warned) in [(0o644, true), (0o640, false), (0o600, false)] {
        chmod(&file, mode);
        let status = filed.run("status x").succeeds();
        assert_eq!(
            status.stderr.contains("chmod o-r"),
            is_warned,
            "{mode:o}: {status:?}"
        );
    }
}
