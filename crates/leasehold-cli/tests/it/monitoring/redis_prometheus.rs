//! The dashboard and the alerts on a real Prometheus, which reads the metrics of a quorum in trouble.

use std::fs;

use leasehold_testkit::servers::{Prometheus, until};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::monitoring::exporter::serve;
use crate::monitoring::prometheus::{alerts, configuration, file};
use crate::support::harness::Sandbox;

/// The answer of Prometheus to a request for `path`, which it must accept.
#[track_caller]
fn data(prometheus: &Prometheus, path: &str) -> Value {
    let text = prometheus.get(path);
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}"));
    assert_eq!(answer["status"], "success", "{path}: {answer}");
    answer["data"].clone()
}

/// The series that the expression has now.
#[track_caller]
fn series(prometheus: &Prometheus, expression: &str) -> Vec<Value> {
    let query = utf8_percent_encode(expression, NON_ALPHANUMERIC);
    let data = data(prometheus, &format!("/api/v1/query?query={query}"));
    data["result"].as_array().unwrap().clone()
}

/// Starts a Prometheus with the configuration of the page, which reads the exporter at `address` each second.
fn start(sandbox: &Sandbox, address: &str) -> Prometheus {
    let often = "global: {scrape_interval: 1s, evaluation_interval: 1s}\n";
    let alerts = file("alerts.yml").display().to_string();
    let given = configuration().replace("127.0.0.1:9746", address);
    let path = sandbox.path("prometheus.yml");
    fs::write(
        &path,
        often.to_owned() + &given.replace("alerts.yml]", &format!("{alerts}]")),
    )
    .unwrap();
    Prometheus::start(&path)
}

/// Asserts that each query of the dashboard has data, with the labels that its legend names.
fn assert_dashboard_has_data(prometheus: &Prometheus) {
    let dashboard = fs::read_to_string(file("grafana.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    for (number, panel) in (1..).zip(panels) {
        let title = panel["title"].as_str().unwrap();
        assert_eq!(panel["id"], number, "{title}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap().replace("$store", ".*");
            let mut found = Vec::new();
            until(&format!("{title} has data: {expression}"), || {
                found = series(prometheus, &expression);
                !found.is_empty()
            });
            let legend = target["legendFormat"].as_str().unwrap();
            let labels = legend.split("{{").skip(1);
            for label in labels.filter_map(|rest| rest.split("}}").next()) {
                let has_label = |one: &Value| one["metric"][label].is_string();
                assert!(found.iter().all(has_label), "{title}, {label}: {found:?}");
            }
        }
    }
    let variable = &dashboard["templating"]["list"][1];
    assert_eq!(
        variable["definition"],
        "label_values(leasehold_store_up, store)"
    );
    let values = "/api/v1/label/store/values?match[]=leasehold_store_up";
    assert_eq!(data(prometheus, values).as_array().unwrap().len(), 1);
}

/// Waits until Prometheus has evaluated each alert, and asserts that it could.
fn assert_alerts_are_evaluated(prometheus: &Prometheus) {
    let rules = || data(prometheus, "/api/v1/rules")["groups"][0]["rules"].clone();
    let mut found = Value::Null;
    until("all alerts are evaluated", || {
        found = rules();
        let mut rules = found.as_array().unwrap().iter();
        rules.all(|rule| rule["health"] != "unknown")
    });
    let found = found.as_array().unwrap();
    assert_eq!(found.len(), alerts().len());
    for rule in found {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}

/// Waits until the alert is pending or fires, and returns its summary.
fn summary_of(prometheus: &Prometheus, alert: &str) -> String {
    let mut summary = None;
    until(&format!("{alert} is pending"), || {
        let alerts = data(prometheus, "/api/v1/alerts")["alerts"].clone();
        let mut alerts = alerts.as_array().unwrap().iter();
        let found = alerts.find(|found| found["labels"]["alertname"] == alert);
        summary = found.map(|found| found["annotations"]["summary"].as_str().unwrap().to_owned());
        summary.is_some()
    });
    summary.unwrap()
}

/// The PromQL of the manual's page about the metrics of the library.
fn expressions_of_the_manual() -> Vec<&'static str> {
    let page = include_str!("../../../../leasehold/src/manual/observing.rs");
    let blocks = page.split("//! ```text\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("//! ```").next());
    let lines = blocks
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("//! "));
    lines.filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn redis_prometheus_shows_a_quorum_in_trouble() {
    let (sandbox, mut servers) = Sandbox::on_quorum(3);
    let holder = sandbox.hold("x", "pid");
    let waiter = sandbox.start("run -v x true");
    waiter.says("waiting");
    let (exporter, address) = serve(&sandbox);
    let prometheus = start(&sandbox, &address);
    servers[0].kill();

    let summary = summary_of(&prometheus, "LeaseholdMemberWithoutVote");
    assert_eq!(
        summary,
        format!("127.0.0.1:{} has no vote", servers[0].port())
    );
    assert_dashboard_has_data(&prometheus);
    assert_alerts_are_evaluated(&prometheus);
    let manual = expressions_of_the_manual();
    assert_eq!(manual.len(), 5, "{manual:?}");
    for expression in manual {
        series(&prometheus, expression);
    }
    for metric in ["locks_held", "waiters"] {
        let expression = format!("leasehold_store_{metric} == 1");
        until(&expression, || series(&prometheus, &expression).len() == 1);
    }

    servers[1].kill();
    let summary = summary_of(&prometheus, "LeaseholdStoreDown");
    assert!(
        summary.contains(&servers[1].port().to_string()),
        "{summary}"
    );
    drop(exporter);
    let summary = summary_of(&prometheus, "LeaseholdExporterDown");
    assert_eq!(summary, format!("no metrics of locks from {address}"));
    drop((waiter, holder));
}
