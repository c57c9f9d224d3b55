use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::python::Venv;
use crate::setup;
use crate::step::{cargo, step, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// What the benchmarks can do without, by the names of `--skip`.
const UNNEEDED: [&str; 5] = ["redis-py", "kazoo", "postgres", "etcd", "zookeeper"];

/// Of these, the stores of the section `stores`.
const STORES: [&str; 3] = ["postgres", "etcd", "zookeeper"];

/// Builds the benchmarks and runs the requested ones, next to the peers that can be installed here. The
/// program knows its own arguments, and names each peer that is missing.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), String> {
    setup::run(workspace, &UNNEEDED.map(str::to_owned))?;
    for store in STORES {
        // The section about the stores names what is missing.
        let others = UNNEEDED.iter().filter(|name| **name != store);
        let others: Vec<String> = others.map(|name| (*name).to_owned()).collect();
        if let Err(why) = setup::run(workspace, &others) {
            println!("left out: {store}: {why}");
        }
    }
    let (peers, folder) = (
        workspace.root().join("bench/peers"),
        workspace.target().join("bench"),
    );
    let node = step("peers in Node.js", || {
        install_node(&peers, &folder.join("node"))
    });
    let python = step("peers in Python", || {
        let path = peers.join("requirements.txt");
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
        let packages = text.lines().filter(|line| !line.starts_with('#'));
        Venv::new(folder.join("python"), packages).install()
    });
    for why in [node, python].into_iter().filter_map(Result::err) {
        println!("left out: {why}");
    }
    // Built separately, without the features of its dependencies that only the benchmarks need.
    let words = "build --quiet --release --package leasehold-cli";
    let mut command = cargo(workspace, words);
    step("leasehold", || succeed(&mut command))?;
    let words = "run --quiet --release --package leasehold-bench --";
    let mut bench = cargo(workspace, words);
    suite::equip(&mut bench, workspace)?;
    bench.env("LEASEHOLD_BENCH_DIR", folder);
    succeed(bench.args(arguments))
}

/// Installs exactly what the lock file says, and again only if it changed.
fn install_node(peers: &Path, folder: &Path) -> Result<(), String> {
    let (lock, installed) = ("package-lock.json", folder.join("installed.json"));
    let wanted = fs::read(peers.join(lock)).map_err(|error| failed(&peers.join(lock), &error))?;
    if fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for name in ["package.json", lock] {
        let to = folder.join(name);
        fs::copy(peers.join(name), &to).map_err(|error| failed(&to, &error))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--silent", "--no-audit", "--no-fund"]);
    succeed(npm.current_dir(folder).stdin(Stdio::null()))?;
    // At the end, so that a failed installation is repeated.
    fs::write(&installed, wanted).map_err(|error| failed(&installed, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
