//! The npm packages: one with JavaScript, and one with the native part for each platform.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{cargo_bindings, folder, node};
use crate::package::{Program, Wheels, add_target, copy, make_anew, read, write, write_licenses};
use crate::step::{answer, step, succeed};
use crate::workspace::Workspace;

/// A platform that has a package.
struct Platform {
    /// The end of the name of the package.
    name: &'static str,
    target: &'static str,
    cpu: &'static str,
    libc: &'static str,
}

const PLATFORMS: [Platform; 4] = [
    Platform {
        name: "linux-x64-gnu",
        target: "x86_64-unknown-linux-gnu",
        cpu: "x64",
        libc: "glibc",
    },
    Platform {
        name: "linux-arm64-gnu",
        target: "aarch64-unknown-linux-gnu",
        cpu: "arm64",
        libc: "glibc",
    },
    Platform {
        name: "linux-x64-musl",
        target: "x86_64-unknown-linux-musl",
        cpu: "x64",
        libc: "musl",
    },
    Platform {
        name: "linux-arm64-musl",
        target: "aarch64-unknown-linux-musl",
        cpu: "arm64",
        libc: "musl",
    },
];

/// The oldest C library that the packages for glibc run on.
const GLIBC: &str = "2.17";

/// What the native part exports to Node.
const ENTRY: &str = "napi_register_module_v1";

/// Packs the binding for the platform of this machine, and checks the packages.
pub(super) fn pack_here(workspace: &Workspace) -> Result<(), String> {
    let this = answer(Command::new("rustc").args(["--print", "host-tuple"]));
    let this = this.ok_or("`rustc --print host-tuple` failed")?;
    let platform = PLATFORMS.iter().find(|it| it.target == this);
    let platform = platform.ok_or_else(|| format!("no npm package for {this}"))?;
    step("npm: build", || {
        let words = "build --release --locked --package leasehold-node";
        succeed(&mut cargo_bindings(workspace, words))
    })?;
    let built = folder(workspace).join("release/libleasehold_node.so");
    step("npm: pack", || {
        make_anew(&packed(workspace))?;
        pack_platform(workspace, platform, &built, None)?;
        pack_main(workspace)
    })?;
    step("npm: install", || check(workspace, platform))
}

/// Packs the binding for all platforms, with the linker of Zig, and checks the packages for this machine.
pub(super) fn pack_all(workspace: &Workspace) -> Result<(), String> {
    let wheels = Wheels::of(workspace);
    step("npm: tools", || {
        wheels.install()?;
        PLATFORMS.iter().try_for_each(|it| add_target(it.target))
    })?;
    make_anew(&packed(workspace))?;
    for platform in &PLATFORMS {
        step(platform.name, || {
            let built = build_with_zig(workspace, &wheels, platform)?;
            pack_platform(workspace, platform, &built, Some(&wheels))
        })?;
    }
    step("npm: pack", || pack_main(workspace))?;
    step("npm: install", || check(workspace, &PLATFORMS[0]))
}

fn build_with_zig(
    workspace: &Workspace,
    wheels: &Wheels,
    platform: &Platform,
) -> Result<PathBuf, String> {
    let words = "zigbuild --release --locked --package leasehold-node --target";
    let mut build = wheels.cargo_zigbuild(workspace, words);
    match platform.libc {
        "glibc" => build.arg(format!("{}.{GLIBC}", platform.target)),
        // Node loads a library, which needs the C library of the system.
        _ => build
            .arg(platform.target)
            .env("RUSTFLAGS", "-C target-feature=-crt-static"),
    };
    let builds = folder(workspace);
    build
        .current_dir(workspace.root().join("bindings"))
        .env("CARGO_TARGET_DIR", &builds);
    succeed(&mut build)?;
    Ok(builds
        .join(platform.target)
        .join("release/libleasehold_node.so"))
}

/// The folder of the packed packages.
fn packed(workspace: &Workspace) -> PathBuf {
    folder(workspace).join("npm")
}

fn pack_platform(
    workspace: &Workspace,
    platform: &Platform,
    built: &Path,
    zig: Option<&Wheels>,
) -> Result<(), String> {
    let exported = answer(Command::new("nm").args(["-D", "--defined-only"]).arg(built));
    if !exported.is_some_and(|names| names.contains(ENTRY)) {
        return Err(format!("{} does not export {ENTRY}", built.display()));
    }
    let package = folder(workspace).join("npm-package").join(platform.name);
    make_anew(&package)?;
    copy(built, &package.join("leasehold.node"))?;
    write(
        &package.join("package.json"),
        &manifest(workspace, platform)?,
    )?;
    let program = Program {
        name: "The npm package leasehold",
        package: "leasehold-node",
        manifest: workspace.root().join("bindings/Cargo.toml"),
    };
    let licenses = package.join("licenses");
    write_licenses(workspace, &program, zig, &[platform.target], &licenses)?;
    pack(workspace, &package)
}

fn manifest(workspace: &Workspace, platform: &Platform) -> Result<String, String> {
    let version = version(workspace)?;
    let Platform {
        name, cpu, libc, ..
    } = platform;
    Ok(format!(
        r#"{{
  "name": "@leasehold/{name}",
  "version": "{version}",
  "description": "The native part of the package leasehold for {name}",
  "license": "MIT OR Apache-2.0",
  "os": ["linux"],
  "cpu": ["{cpu}"],
  "libc": ["{libc}"],
  "main": "leasehold.node",
  "files": ["leasehold.node", "licenses"],
  "engines": {{ "node": ">=18.18" }}
}}
"#
    ))
}

/// Packs the package with JavaScript. Its version, and those of the platform packages that it names, must be the same.
fn pack_main(workspace: &Workspace) -> Result<(), String> {
    let package = folder(workspace).join("npm-package/main");
    node::copy_package(workspace, &package)?;
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&workspace.root().join(name), &package.join(name))?;
    }
    let manifest = read(&package.join("package.json"))?;
    let version = version(workspace)?;
    let named = PLATFORMS
        .iter()
        .map(|it| format!("\"@leasehold/{}\"", it.name));
    let wanted = named.chain(["\"version\"".to_owned()]);
    for name in wanted {
        let line = format!("{name}: \"{version}\"");
        if !manifest.contains(&line) {
            return Err(format!("bindings/node/package.json does not say {line}"));
        }
    }
    pack(workspace, &package)
}

fn version(workspace: &Workspace) -> Result<String, String> {
    let manifest = read(&workspace.root().join("bindings/Cargo.toml"))?;
    let mut lines = manifest.lines();
    let version = lines.find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version
        .map(str::to_owned)
        .ok_or_else(|| "bindings/Cargo.toml has no version".to_owned())
}

fn pack(workspace: &Workspace, package: &Path) -> Result<(), String> {
    if read(&package.join("package.json"))?.contains("\"scripts\"") {
        return Err(format!("{} runs scripts", package.display()));
    }
    let mut pack = npm(package);
    pack.args(["pack", "--silent", "--pack-destination"]);
    succeed(pack.arg(packed(workspace)))
}

/// Installs the packages offline into a fresh folder, and runs the first program of the page for Node there.
fn check(workspace: &Workspace, platform: &Platform) -> Result<(), String> {
    let fresh = folder(workspace).join("npm-fresh");
    make_anew(&fresh)?;
    write(&fresh.join("package.json"), "{ \"private\": true }\n")?;
    let version = version(workspace)?;
    let mut install = npm(&fresh);
    install.args(["install", "--offline", "--no-audit", "--no-fund"]);
    for name in [
        "leasehold".to_owned(),
        format!("leasehold-{}", platform.name),
    ] {
        install.arg(packed(workspace).join(format!("{name}-{version}.tgz")));
    }
    succeed(&mut install)?;
    let page = read(&workspace.root().join("docs/node.md"))?;
    let first = page
        .split_once("```js\n")
        .and_then(|(_, rest)| rest.split_once("```"));
    let (first, _) = first.ok_or("docs/node.md has no program")?;
    let locks = fresh.join("locks");
    let first = first.replace("/tmp/locks", &locks.to_string_lossy());
    write(&fresh.join("first.mjs"), &first)?;
    let required = "require('leasehold').connect('memory:').lock('a').then((guard) => guard.release()).then(console.log)";
    for (arguments, expected) in [
        (&["first.mjs"][..], "I have the lock, with fence "),
        (&["-e", required][..], "released"),
    ] {
        let said = answer(Command::new("node").args(arguments).current_dir(&fresh));
        println!("{}", said.as_deref().unwrap_or_default());
        if !said.is_some_and(|said| said.starts_with(expected)) {
            return Err(format!(
                "node {} did not say {expected:?}",
                arguments.join(" ")
            ));
        }
    }
    Ok(())
}

fn npm(folder: &Path) -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(folder).stdin(Stdio::null());
    npm
}
