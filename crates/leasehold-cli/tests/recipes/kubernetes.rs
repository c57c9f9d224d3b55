//! The manifests of the recipe are valid by the schemas of Kubernetes.

use boon::{Compiler, Schemas};
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::Value;

use crate::{blocks, page};

/// Checks `manifest` as the API server checks the fields of an object.
fn check(manifest: &Value) -> Result<(), String> {
    let group = match manifest["kind"].as_str() {
        Some("Secret") => "core",
        Some("Job" | "CronJob") => "batch",
        _ => "apps",
    };
    let kind = manifest["kind"].as_str().unwrap();
    let schema = format!("kubernetes.json#/$defs/io.k8s.api.{group}.v1.{kind}");
    let all = serde_json::from_str(include_str!("kubernetes-1.34.json")).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("kubernetes.json", all).unwrap();
    let schema = compiler.compile(&schema, &mut schemas).unwrap();
    let checked = schemas.validate(manifest, schema);
    checked.map_err(|error| error.to_string())
}

fn json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Boolean(value)) => (*value).into(),
        Yaml::Value(Scalar::Integer(value)) => (*value).into(),
        Yaml::Value(Scalar::String(value)) => value.as_ref().into(),
        Yaml::Sequence(values) => values.iter().map(json).collect(),
        Yaml::Mapping(fields) => {
            let fields = fields.iter();
            fields
                .map(|(name, value)| (name.as_str().unwrap(), json(value)))
                .collect()
        }
        other => panic!("{other:?}"),
    }
}

fn manifests() -> Vec<Value> {
    let page = page("kubernetes.md");
    let texts = blocks(&page, "yaml").into_iter();
    let read = |text| Yaml::load_from_str(text).unwrap();
    texts.flat_map(read).map(|yaml| json(&yaml)).collect()
}

#[test]
fn kubernetes_manifests_match_their_schemas() {
    let manifests = manifests();
    assert_eq!(manifests.len(), 4);
    for manifest in &manifests {
        assert_eq!(check(manifest), Ok(()));
    }
}

#[test]
fn kubernetes_schemas_refuse_unknown_fields() {
    let mut job = manifests().swap_remove(1);
    job["spec"]["template"]["spec"]["containers"][0]["comand"] = "leasehold".into();
    let error = check(&job).unwrap_err();
    assert!(error.contains("comand"), "{error}");
}
