use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use leasehold::Key;
use leasehold_file::FileStore;

use crate::support::harness::Sandbox;
use crate::support::program::sh;

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

/// The configuration file of the sandbox's user, in a folder that exists.
fn config_file(sandbox: &Sandbox) -> PathBuf {
    let folder = sandbox.path("home/.config/leasehold");
    fs::create_dir_all(&folder).unwrap();
    folder.join("leasehold.toml")
}

const NOTICE: &str = "local to this machine and user";

#[test]
fn default_store_prints_a_notice_unless_local() {
    let lock = LocalLock::new("default");
    let sandbox = Sandbox::new();
    let run = |args: &str| sandbox.run_without_store(&[], args);
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
    let required = [("LEASEHOLD_REQUIRE_STORE", "1")];
    let run = |args: &str| sandbox.run_without_store(&required, args);
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
    let file = config_file(&sandbox);
    fs::write(file, "require_store = true\n").unwrap();
    let run = |args: &str| sandbox.run_without_store(&[], args);
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
    let file = config_file(&sandbox);
    fs::write(&file, format!("\nstore = '{}'", sandbox.store())).unwrap();
    let store = format!("file:{}", sandbox.path("locks").display());
    let of_file = format!("{}: line 2", file.display());
    let option = format!("status x --json --store {}", sandbox.store());
    let variable = [("LEASEHOLD_STORE", sandbox.store())];
    for (args, variables, source) in [
        ("status x --json", &[][..], &*of_file),
        ("ls --json", &[], &*of_file),
        ("status x --json", &variable, "LEASEHOLD_STORE"),
        (&option, &variable, "--store"),
    ] {
        let shown = sandbox.run_without_store(variables, args).json();
        assert_eq!(
            (&shown["store"], &shown["store_source"]),
            (&store.clone().into(), &source.into())
        );
    }
}

#[test]
fn configuration_file_names_the_store() {
    let sandbox = Sandbox::new();
    let file = config_file(&sandbox);
    // In the sandbox, which is the current folder: must not be read.
    fs::write(sandbox.path("leasehold.toml"), "store = 'nonsense'").unwrap();
    fs::write(&file, format!("store = '{}'", sandbox.store())).unwrap();
    let members = sh("run x", "echo $LEASEHOLD_MEMBERS");
    let run = || sandbox.run_without_store(&[], &members);
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
    let config = sandbox.path("c.toml").display().to_string();
    let run = |args: &str| sandbox.run_without_store(&[("LEASEHOLD_CONFIG", &config)], args);
    write("store = 'redis://:secret@127.0.0.1:1'\n");
    let warning = format!("run `chmod o-r {config}`");
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
