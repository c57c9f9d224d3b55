use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::error::{Fallible, failed};
use crate::measure::subject::Program;
use crate::options::folder;

/// The argument that makes this program a worker.
pub(crate) const WORKER_VERB: &str = "worker";

/// How to start the program of a subject.
pub(crate) fn command(program: Program) -> Fallible<Command> {
    match program {
        Program::Own(part) => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args([WORKER_VERB, part]);
            Ok(command)
        }
        Program::Java(part) => {
            let folder = folder();
            let source = folder.join("Curator.java");
            let written = std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(&source, include_str!("Curator.java")));
            written.map_err(|error| failed(&source, &error))?;
            let mut command = Command::new("java");
            // The jars are in the environment.
            command.args(["-Xmx128m", "-XX:+UseSerialGC"]);
            command.arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=error");
            command.arg(source).arg(part);
            Ok(command)
        }
        Program::Node(part) => {
            // Beside the packages, where node looks for them.
            let script = node_folder().join("node.cjs");
            let written = std::fs::write(&script, include_str!("node.cjs"));
            written.map_err(|error| failed(&script, &error))?;
            let mut command = Command::new("node");
            command.arg(script).arg(part);
            Ok(command)
        }
        Program::Python(part) => {
            let mut command = Command::new(python_program());
            command.args(["-c", include_str!("python.py"), part]);
            Ok(command)
        }
    }
}

/// What is the matter with the program of a subject, if it cannot be run here.
pub(crate) fn lacking(program: Program) -> Option<String> {
    let mut test = match program {
        Program::Own("etcd/etcdctl") => {
            let mut etcdctl = Command::new("etcdctl");
            etcdctl.env("ETCDCTL_API", "3").arg("version");
            etcdctl
        }
        Program::Own(_) => return None,
        Program::Java(_) => {
            // A source file is compiled when it is run.
            let mut compiler = Command::new("javac");
            compiler.arg("--version");
            compiler
        }
        Program::Node(_) => {
            let mut node = Command::new("node");
            node.args(["-e", "require('redlock'); require('ioredis')"]);
            node.current_dir(node_folder());
            node
        }
        Program::Python(part) => {
            let mut python = Command::new(python_program());
            let module = match part {
                "redis-py" => "redis",
                other => other.trim_start_matches("python-"),
            };
            let module = module.replace('-', "_");
            python.args(["-c", &format!("import {module}")]);
            python
        }
    };
    match test.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            let error = text.lines().find(|line| line.contains("Error"));
            Some(error.unwrap_or("its program fails").to_owned())
        }
        Err(error) => Some(format!("{}: {error}", test.get_program().display())),
    }
}

/// What a program prints, if it succeeds.
pub(crate) fn answer(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// Name and version of what is not Rust.
pub(crate) fn versions() -> Vec<String> {
    let program = |name: &str, program: PathBuf| {
        let told = answer(Command::new(program).arg("--version"))?;
        Some(format!(
            "{name} {}",
            told.trim_start_matches("Python ").trim_start_matches('v')
        ))
    };
    let lock: Value = serde_json::from_str(include_str!("package-lock.json")).unwrap_or_default();
    let npm = ["ioredis", "redlock"].map(|name| {
        let version = lock["packages"][format!("node_modules/{name}")]["version"].as_str();
        format!("{name} (npm) {}", version.unwrap_or("unknown"))
    });
    let python = include_str!("requirements.txt").lines();
    let python = python.filter(|line| !line.starts_with('#'));
    let mut versions: Vec<_> = program("Node.js", "node".into()).into_iter().collect();
    versions.extend(npm);
    versions.extend(program("Python", python_program()));
    versions.extend(python.map(|line| line.replace("==", " ")));
    versions
}

fn node_folder() -> PathBuf {
    folder().join("node")
}

/// Of an environment of the benchmarks' own.
fn python_program() -> PathBuf {
    folder().join("python/bin/python")
}
