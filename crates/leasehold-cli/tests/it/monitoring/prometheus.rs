//! The alerts and the metrics, as `promtool` reads them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use saphyr::{LoadableYamlNode as _, Yaml};

use crate::support::harness::Sandbox;

/// A file of docs/monitoring.
pub(crate) fn file(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitoring");
    folder.join(name).canonicalize().unwrap()
}

/// The configuration of Prometheus on the page.
pub(crate) fn configuration() -> String {
    let page = fs::read_to_string(file("README.md")).unwrap();
    let (_, block) = page.split_once("```yaml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let lines = block.lines().map(|line| line.strip_prefix("   "));
    let lines: Vec<&str> = lines.map(Option::unwrap_or_default).collect();
    lines.join("\n")
}

/// Asserts that `promtool` accepts its input without a complaint, and returns what it prints.
fn accepted(words: &[&str], input: Stdio) -> String {
    let output = Command::new("promtool")
        .args(words)
        .stdin(input)
        .output()
        .expect("promtool, which `cargo xtask setup` unpacks");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && complaints.is_empty(),
        "{words:?}: {output:?}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// The names of the alerts in `alerts.yml`.
pub(crate) fn alerts() -> Vec<String> {
    let text = fs::read_to_string(file("alerts.yml")).unwrap();
    let documents = Yaml::load_from_str(&text).unwrap();
    let rules = documents[0]["groups"][0]["rules"].as_sequence().unwrap();
    let names = rules.iter().map(|rule| rule["alert"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn prometheus_alerts_pass_their_tests() {
    let [rules, tests] = ["alerts.yml", "alerts-test.yml"].map(file);
    accepted(
        &["check", "rules", "--lint-fatal", rules.to_str().unwrap()],
        Stdio::null(),
    );
    accepted(&["test", "rules", tests.to_str().unwrap()], Stdio::null());
}

#[test]
fn prometheus_alerts_are_tested_both_ways() {
    let text = fs::read_to_string(file("alerts-test.yml")).unwrap();
    let documents = Yaml::load_from_str(&text).unwrap();
    // How often each alert is silent, and how often it fires.
    let mut tested: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for test in documents[0]["tests"].as_sequence().unwrap() {
        for case in test["alert_rule_test"].as_sequence().unwrap() {
            let fires = case.as_mapping_get("exp_alerts").is_some();
            let name = case["alertname"].as_str().unwrap();
            tested.entry(name).or_default()[usize::from(fires)] += 1;
        }
    }
    let page = fs::read_to_string(file("README.md")).unwrap();
    for alert in alerts() {
        let counts = tested.get(alert.as_str());
        assert!(counts.is_some_and(|counts| !counts.contains(&0)), "{alert}");
        assert!(page.contains(&format!("| `{alert}` |")), "{alert}");
    }
}

#[test]
fn prometheus_accepts_the_configuration_of_the_page() {
    let sandbox = Sandbox::new();
    let path = sandbox.path("prometheus.yml");
    fs::write(&path, configuration()).unwrap();
    fs::copy(file("alerts.yml"), sandbox.path("alerts.yml")).unwrap();
    let printed = accepted(&["check", "config", path.to_str().unwrap()], Stdio::null());
    assert!(printed.contains("1 rule files found"), "{printed}");
}

#[test]
fn prometheus_accepts_the_metrics() {
    let sandbox = Sandbox::new();
    let holder = sandbox.hold("x", "pid");
    let text = sandbox.run("exporter").succeeds().stdout;
    assert!(text.contains("oldest_holder_timestamp_seconds{"), "{text}");
    fs::write(sandbox.path("metrics"), text).unwrap();
    let input = File::open(sandbox.path("metrics")).unwrap();
    accepted(&["check", "metrics"], input.into());
    sandbox.finish(holder);
}
