//! The recipes of docs/recipes work: their commands run, systemd reads their units, and servers refuse late holders.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how a test fails"
)]

mod kubernetes;
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

/// The manifest with this number on the page about Kubernetes.
fn with_manifest(number: usize, kind: &str, check: impl FnOnce(&Yaml<'_>)) {
    let page = page("kubernetes.md");
    let manifests = Yaml::load_from_str(blocks(&page, "yaml")[number]).unwrap();
    let [manifest] = manifests.as_slice() else {
        panic!("one manifest a block");
    };
    assert_eq!(manifest["kind"].as_str(), Some(kind));
    check(manifest);
}

fn at<'a>(manifest: &'a Yaml<'a>, path: &str) -> &'a Yaml<'a> {
    path.split('/').fold(manifest, |node, name| &node[name])
}

/// The command of the only container, which has the file of the secret.
fn command_of(pod: &Yaml<'_>) -> Vec<String> {
    let container = &pod["containers"][0];
    let mut variables = container["env"].as_sequence().unwrap().iter();
    let config = variables.find(|it| it["name"].as_str() == Some("LEASEHOLD_CONFIG"));
    let mounted = container["volumeMounts"][0]["mountPath"].as_str().unwrap();
    let file = format!("{mounted}/leasehold.toml");
    assert_eq!(config.unwrap()["value"].as_str(), Some(&*file));
    let secret = &pod["volumes"][0]["secret"]["secretName"];
    assert_eq!(secret.as_str(), Some("leasehold"));
    let command = container["command"].as_sequence().unwrap().iter();
    command.map(|it| it.as_str().unwrap().to_owned()).collect()
}

#[test]
fn kubernetes_manifests_run_their_commands() {
    with_manifest(1, "Job", |job| {
        assert_eq!(
            command_of(at(job, "spec/template/spec")),
            ["leasehold", "init"]
        );
    });
    with_manifest(2, "CronJob", |job| {
        assert_runs(&command_of(at(job, "spec/jobTemplate/spec/template/spec")));
        let rule = &at(job, "spec/jobTemplate/spec/podFailurePolicy/rules")[0];
        let codes = rule["onExitCodes"]["values"].as_sequence().unwrap().iter();
        let codes: Vec<i64> = codes.map(|it| it.as_integer().unwrap()).collect();
        assert_eq!(codes, [64, 75, 77, 78]);
    });
    with_manifest(3, "Deployment", |deployment| {
        assert_runs(&command_of(at(deployment, "spec/template/spec")));
    });
}

#[test]
fn kubernetes_secret_is_a_configuration_file() {
    with_manifest(0, "Secret", |secret| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("leasehold.toml");
        let text = at(secret, "stringData")["leasehold.toml"].as_str().unwrap();
        fs::write(&file, text).unwrap();
        let output = Command::new(LEASEHOLD)
            .args(["run", "-n", "x", "true"])
            .env_clear()
            .env("LEASEHOLD_CONFIG", &file)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            said.contains("redis-0") && !said.contains("line "),
            "{said}"
        );
    });
}

/// The units of the page and their drop-ins, each with its file in the folder of units.
fn units() -> Vec<(String, String)> {
    let page = page("systemd.md");
    let blocks = blocks(&page, "ini").into_iter();
    let named = blocks.map(|block| {
        let path = block.lines().next().unwrap();
        let name = path.strip_prefix("# /etc/systemd/system/").unwrap();
        (name.to_owned(), block.to_owned())
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
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, unit).unwrap();
            path
        })
        // It reads the drop-ins with their unit.
        .filter(|path| path.extension().unwrap() != "conf")
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
