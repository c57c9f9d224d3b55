use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use leasehold::Key;
use leasehold_file::FileStore;

use crate::support::harness::Sandbox;
use crate::support::program::Arguments as _;

/// A lock in the folder of this user, which all tests share; removed when dropped.
struct LocalLock(String);

impl LocalLock {
    fn new(name: &str) -> Self {
        Self(format!("leasehold-cli-test-{name}-{}", std::process::id()))
    }
}

impl Drop for LocalLock {
    fn drop(&mut self) {
        // A user who is not root has the default folder in the sandbox, which is gone by now.
        if nix::unistd::geteuid().is_root() {
            let store = FileStore::open_default().unwrap();
            let _ = fs::remove_file(store.lock_file(&Key::new(&self.0).unwrap()));
        }
    }
}

const NOTICE: &str = "local to this machine and user";

#[test]
fn default_store_prints_a_notice_unless_local() {
    let lock = LocalLock::new("default");
    let sandbox = Sandbox::new();
    let run = |args: &str| {
        let mut command = sandbox.without_store();
        command.args(args.list());
        sandbox.spawn(command).wait()
    };
    run(&format!("run -v {} true", lock.0)).fails(0, &[NOTICE]);
    run(&format!("status -v {}", lock.0)).fails(0, &[NOTICE]);
    let ended = run(&format!("run {} true", lock.0));
    assert_eq!((ended.code(), &*ended.stderr), (0, ""), "nothing is wrong");
    let ended = run(&format!("run -v --local {} true", lock.0));
    assert!(!ended.stderr.contains(NOTICE), "{ended:?}");
}

#[test]
fn a_required_store_is_required() {
    let lock = LocalLock::new("required");
    let sandbox = Sandbox::new();
    let run = |args: &str| {
        let mut command = sandbox.without_store();
        command
            .env("LEASEHOLD_REQUIRE_STORE", "1")
            .args(args.list());
        sandbox.spawn(command).wait()
    };
    let refused = run(&format!("run {} touch ran", lock.0));
    refused.fails(64, &["LEASEHOLD_REQUIRE_STORE", "--store"]);
    assert!(!sandbox.path("ran").exists());
    run(&format!("run --local {} true", lock.0)).succeeds();
    run(&format!("run --store {} x true", sandbox.store())).succeeds();
}

#[test]
fn file_requires_a_store_in_any_environment() {
    let lock = LocalLock::new("required-by-file");
    let sandbox = Sandbox::new();
    let folder = sandbox.path("home/.config/leasehold");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("leasehold.toml"), "require_store = true\n").unwrap();
    let run = |args: &str| {
        let mut command = sandbox.without_store();
        command.args(args.list());
        sandbox.spawn(command).wait()
    };
    let refused = run(&format!("run {} touch ran", lock.0));
    refused.fails(
        64,
        &[
            "no store configured",
            "leasehold.toml has require_store",
            "--store",
        ],
    );
    assert!(!sandbox.path("ran").exists());
    run(&format!("run --local {} true", lock.0)).succeeds();
    run(&format!("run --store {} x true", sandbox.store())).succeeds();
}

#[test]
fn status_and_ls_name_the_store_and_its_source() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("home/.config/leasehold");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("leasehold.toml");
    fs::write(&file, format!("\nstore = '{}'", sandbox.store())).unwrap();
    let store = format!("file:{}", sandbox.path("locks").display());
    let of_file = format!("{}: line 2", file.display());
    let option = ["status", "x", "--json", "--store", sandbox.store()];
    for (args, variable, source) in [
        (&["status", "x", "--json"][..], false, &*of_file),
        (&["ls", "--json"], false, &*of_file),
        (&["status", "x", "--json"], true, "LEASEHOLD_STORE"),
        (&option, true, "--store"),
    ] {
        let mut command = match variable {
            true => sandbox.leasehold(),
            false => sandbox.without_store(),
        };
        command.args(args);
        let shown = sandbox.spawn(command).wait().json();
        assert_eq!(
            (&shown["store"], &shown["store_source"]),
            (&store.clone().into(), &source.into())
        );
    }
}

#[test]
fn configuration_file_names_the_store() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("home/.config/leasehold");
    fs::create_dir_all(&folder).unwrap();
    // In the sandbox, which is the current folder: must not be read.
    fs::write(sandbox.path("leasehold.toml"), "store = 'nonsense'").unwrap();
    let file = folder.join("leasehold.toml");
    fs::write(&file, format!("store = '{}'", sandbox.store())).unwrap();
    let run = || {
        let mut command = sandbox.without_store();
        command.args(["run", "x", "--", "sh", "-c", "echo $LEASEHOLD_MEMBERS"]);
        sandbox.spawn(command).wait()
    };
    let ended = run();
    assert_eq!((ended.code(), &*ended.stderr), (0, ""));
    let members = format!("file:{}\n", sandbox.path("locks").display());
    assert_eq!(ended.stdout, members);
    for (text, parts) in [
        (
            "stor = 'redis://:secret@host'",
            ["line 1", "unknown field `stor`"],
        ),
        (
            "\nstore = 'redis://:secret@host:x'",
            ["line 2: store URL", "port"],
        ),
    ] {
        fs::write(&file, text).unwrap();
        let ended = run();
        ended.fails(64, &parts);
        ended.fails(64, &["leasehold.toml"]);
        assert!(!ended.stderr.contains("secret"), "{ended:?}");
    }
}

#[test]
fn readable_file_with_a_password_is_warned_of() {
    let sandbox = Sandbox::new();
    let chmod = |name: &str, mode| {
        fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod("", 0o755);
    let store = sandbox.store();
    let write = |text: &str| fs::write(sandbox.path("c.toml"), text).unwrap();
    let run = |args: &str| {
        let mut command = sandbox.without_store();
        command.env("LEASEHOLD_CONFIG", sandbox.path("c.toml"));
        command.args(args.list());
        sandbox.spawn(command).wait()
    };
    write("store = 'redis://:secret@127.0.0.1:1'\n");
    let warning = format!("run `chmod o-r {}`", sandbox.path("c.toml").display());
    for args in ["status x", "members", "run -n x true"] {
        chmod("c.toml", 0o644);
        let ended = run(args);
        assert_eq!(ended.stderr.matches(&warning).count(), 1, "{ended:?}");
        assert!(!ended.stderr.contains("secret"), "{ended:?}");
        chmod("c.toml", 0o640);
        assert!(!run(args).stderr.contains("chmod"), "{args}");
    }
    write(&format!("store = '{store}'\n"));
    chmod("c.toml", 0o644);
    assert_eq!(run("run x true").stderr, "");
}

#[test]
fn dead_server_is_reported_once() {
    let sandbox = Sandbox::on(&["redis://127.0.0.1:1".into()]);
    for args in [
        "run -n x true",
        "acquire -n x",
        "once -n x true",
        "run --json -n x true",
    ] {
        let ended = sandbox.run(args);
        ended.fails(69, &[]);
        assert_eq!(
            ended.stderr.matches("no connection").count(),
            1,
            "{ended:?}"
        );
    }
    // A waiter learns the reason during the wait, too.
    let waited = sandbox.run("run --wait 3s x true");
    waited.fails(69, &["warning: 127.0.0.1:1 cannot be used: no connection"]);
}
