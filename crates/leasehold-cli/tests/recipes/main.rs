//! The recipes of docs/recipes work: their commands run, systemd reads their units, and servers refuse late holders.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod mariadb;
mod s3;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use saphyr::{LoadableYamlNode as _, Yaml};

/// The command under test.
const LEASEHOLD: &str = env!("CARGO_BIN_EXE_leasehold");

/// A page of `docs/recipes`.
pub(crate) fn page(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The blocks of a page in this language.
pub(crate) fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1);
    let blocks: Vec<&str> = blocks.filter_map(|it| it.split("```").next()).collect();
    assert!(!blocks.is_empty(), "no block in {language}");
    blocks
}

/// Runs a command of a recipe on a folder of locks, with `true` in place of its program.
fn assert_runs(words: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let end = words.iter().position(|word| word == "--").unwrap();
    let (program, options) = words[..end].split_first().unwrap();
    assert!(program.ends_with("leasehold"), "{words:?}");
    // As long as a test may take.
    let options = options.iter().map(|word| word.replace("50s", "1ms"));
    let output = Command::new(LEASEHOLD)
        .args(options)
        .args(["--", "true"])
        .env_clear()
        .env("HOME", folder.path())
        .env(
            "LEASEHOLD_STORE",
            format!("file://{}/locks", folder.path().display()),
        )
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
}

#[test]
fn kubernetes_manifests_run_their_commands() {
    let page = page("kubernetes.md");
    for (block, kind, containers) in [
        (
            0,
            "CronJob",
            "spec/jobTemplate/spec/template/spec/containers",
        ),
        (1, "Deployment", "spec/template/spec/containers"),
    ] {
        let manifests = Yaml::load_from_str(blocks(&page, "yaml")[block]).unwrap();
        let [manifest] = manifests.as_slice() else {
            panic!("one manifest a block");
        };
        assert_eq!(manifest["kind"].as_str(), Some(kind));
        let containers = containers
            .split('/')
            .fold(manifest, |node, name| &node[name]);
        let container = &containers[0];
        let command = container["command"].as_sequence().unwrap().iter();
        let command: Vec<String> = command.map(|it| it.as_str().unwrap().to_owned()).collect();
        assert_runs(&command);
        let mut variables = container["env"].as_sequence().unwrap().iter();
        assert!(variables.any(|it| it["name"].as_str() == Some("LEASEHOLD_STORE")));
    }
}

/// The units of the page, each with the name of its file.
fn units() -> Vec<(String, String)> {
    let page = page("systemd.md");
    let blocks = blocks(&page, "ini").into_iter();
    let named = blocks.map(|block| {
        let path = block.lines().next().unwrap().strip_prefix("# ").unwrap();
        let name = Path::new(path).file_name().unwrap();
        (name.to_string_lossy().into_owned(), block.to_owned())
    });
    named.collect()
}

#[test]
fn commands_of_units_run() {
    let units = units();
    let lines = units.iter().flat_map(|(_, unit)| unit.lines());
    let commands: Vec<&str> = lines
        .filter_map(|line| line.strip_prefix("ExecStart="))
        .collect();
    assert_eq!(commands.len(), 2);
    for command in commands {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        assert_runs(&words);
    }
}

#[test]
fn systemd_accepts_the_units() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = units()
        .into_iter()
        .map(|(name, unit)| {
            // systemd looks for the programs.
            let unit = unit.replace("/usr/bin/leasehold", LEASEHOLD);
            let unit = unit.replace("/usr/local/bin/", "/usr/bin/true ");
            let path = folder.path().join(name);
            fs::write(&path, unit).unwrap();
            path
        })
        .collect();
    assert_eq!(paths.len(), 3);
    let output = Command::new("systemd-analyze")
        .args(["verify", "--man=no", "--recursive-errors=no"])
        .args(&paths)
        .output()
        .expect("systemd-analyze, which `cargo xtask setup` installs");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{complaints}"
    );
}

/// The configuration file of the page is one that the command reads.
#[test]
fn configuration_of_the_units_names_a_quorum() {
    let page = page("systemd.md");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leasehold.toml");
    // No server listens there, and the answer comes at once.
    let text = blocks(&page, "toml")[0].replace("@10.0.0.", "@127.0.0.1:");
    fs::write(&file, text).unwrap();
    let output = Command::new(LEASEHOLD)
        .args(["members", "--json"])
        .env_clear()
        .env("LEASEHOLD_CONFIG", &file)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("127.0.0.1:3"), "{output:?}");
}
