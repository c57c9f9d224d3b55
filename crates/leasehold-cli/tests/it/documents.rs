use std::collections::BTreeSet;
use std::process::Command;

use crate::support::harness::Sandbox;

#[test]
fn every_shell_has_completions_that_bash_loads() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = sandbox.run(&format!("completions {shell}")).succeeds();
        assert!(ended.stdout.contains("max-hold"), "{shell}");
        assert!(!ended.stdout.contains("__guardian"), "{shell}");
        std::fs::write(sandbox.path(shell), ended.stdout).unwrap();
    }
    let script = "source ./bash && COMP_WORDS=(leasehold run --gr) && COMP_CWORD=2 \
                  && _leasehold leasehold --gr run && echo ${COMPREPLY[@]}";
    let mut bash = Command::new("bash");
    sandbox.furnish(&mut bash);
    bash.args(["-c", script]);
    assert_eq!(sandbox.spawn(bash).wait().stdout, "--grace\n");
}

#[test]
fn man_pages_have_sections_and_json_fields() {
    let sandbox = Sandbox::new();
    let page = sandbox.run("man").stdout;
    assert!(page.contains(".SH \"EXIT STATUS\""), "{page}");
    assert!(!page.contains("guardian"), "{page}");
    for (subcommand, part) in [
        ("run", "LEASEHOLD_FENCES"),
        ("elect", "campaigns"),
        ("members", "remove"),
    ] {
        let page = sandbox.run(&format!("man {subcommand}")).stdout;
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// The packages have this example as a file.
#[test]
fn example_of_the_configuration_has_every_key() {
    let page = include_str!("../../../../docs/configuration.md");
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let sandbox = Sandbox::new();
    let status = |text: &str| {
        std::fs::write(sandbox.path("leasehold.toml"), text).unwrap();
        sandbox.run_without_store(&[("LEASEHOLD_CONFIG", "leasehold.toml")], "status deploy")
    };
    // Nothing listens on these ports.
    let ended = status(&example.replace("10.0.0.", "127.0.0.1:"));
    assert_eq!(ended.code(), 69, "{ended:?}");

    let refusal = status("unknown = true\n").stderr;
    let (_, keys) = refusal.split_once("expected one of ").unwrap();
    let keys: Vec<&str> = keys.split('`').skip(1).step_by(2).collect();
    assert!(keys.contains(&"store"), "{refusal}");
    for key in keys {
        assert!(example.contains(&format!("\n{key} = ")), "{key} is missing");
    }
}

/// The subcommands that the help of `subcommand` lists; those of the program if `subcommand` is empty.
fn subcommands_of(sandbox: &Sandbox, subcommand: &str) -> Vec<String> {
    let help = sandbox.run(&format!("{subcommand} --help")).stdout;
    let (_, listed) = help.split_once("\nCommands:\n").unwrap_or_default();
    let listed = listed.lines().take_while(|line| line.starts_with("  "));
    // The description of a subcommand may continue on another line, which is indented further.
    let names = listed.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names = names.filter(|name| *name != "help");
    names
        .map(|name| format!("{subcommand} {name}").trim().to_owned())
        .collect()
}

/// The long options that the help of `subcommand` lists.
fn options_of(sandbox: &Sandbox, subcommand: &str) -> Vec<String> {
    let help = sandbox.run(&format!("{subcommand} --help")).stdout;
    let (_, listed) = help.split_once("\nOptions:\n").unwrap();
    // Examples, environments, and the exit status come next.
    let listed = listed.split("\n\nE").next().unwrap();
    // The descriptions of options are indented further.
    let lines = listed.lines().filter(|line| !line.starts_with("        "));
    let words =
        lines.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
    // A value that may be left out is part of the word.
    let names = words.map(|word| word.split('[').next().unwrap_or(word));
    names.map(str::to_owned).collect()
}

/// All subcommands, those of other subcommands too, each by the words that name it.
fn all_subcommands(sandbox: &Sandbox) -> Vec<String> {
    let mut all = subcommands_of(sandbox, "");
    let inner = all.iter().flat_map(|name| subcommands_of(sandbox, name));
    let inner: Vec<String> = inner.collect();
    all.extend(inner);
    all
}

#[test]
fn written_pages_are_those_of_all_subcommands() {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("man1");
    std::fs::create_dir(&folder).unwrap();
    sandbox.run("man --write man1").succeeds();
    let names = all_subcommands(&sandbox).into_iter().chain([String::new()]);
    let names: BTreeSet<String> = names.collect();
    for name in &names {
        let file = format!("leasehold {name}").trim().replace(' ', "-") + ".1";
        let page = std::fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(page, sandbox.run(&format!("man {name}")).stdout);
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), names.len());
    let refused = sandbox.run("man --write missing/folder");
    refused.fails(74, &["cannot write the man page missing/folder/leasehold"]);
}

#[test]
fn pages_and_completions_have_all_options() {
    let sandbox = Sandbox::new();
    let shells = ["bash", "zsh", "fish", "elvish", "powershell"];
    let scripts = shells.map(|shell| sandbox.run(&format!("completions {shell}")).stdout);
    let all = all_subcommands(&sandbox);
    for known in ["run", "members add", "fence check"] {
        assert!(all.iter().any(|name| name == known), "{known}: {all:?}");
    }
    for name in &all {
        let page = sandbox.run(&format!("man {name}")).stdout;
        let title = format!(".TH leasehold-{} 1", name.replace(' ', "-"));
        assert!(page.contains(&title), "{name}: {page}");
        let page = page.replace('\\', "");
        let options = options_of(&sandbox, name);
        assert!(options.iter().any(|it| it == "--help"), "{name}");
        for option in options {
            assert!(page.contains(&option), "{name} {option}: {page}");
            let word = option.trim_start_matches('-');
            for (shell, script) in shells.iter().zip(&scripts) {
                assert!(script.contains(word), "{shell}: {name} {option}");
            }
            // For these, each line of fish names its subcommand.
            let (first, _) = name.split_once(' ').unwrap_or((name, ""));
            let of_subcommand = format!("_using_subcommand {first}");
            let is_long = format!(" -l {word}");
            let mut lines = scripts[2].lines();
            let has_option = |line: &str| line.contains(&of_subcommand) && line.contains(&is_long);
            assert!(lines.any(has_option), "{name} {option}");
        }
    }
}

#[test]
fn every_help_fits_one_hundred_columns() {
    let sandbox = Sandbox::new();
    let mut all = all_subcommands(&sandbox);
    all.push(String::new());
    for name in all {
        for args in [format!("{name} --help"), format!("help {name}")] {
            let help = sandbox.run(&args).stdout;
            for line in help.lines() {
                assert!(line.chars().count() <= 100, "{name}: {line}");
            }
            let about = help.lines().next().unwrap();
            assert!(about.chars().count() <= 60, "{name}: {about}");
        }
    }
}

#[test]
fn help_in_short_fits_one_hundred_lines() {
    let sandbox = Sandbox::new();
    let mut all = all_subcommands(&sandbox);
    all.push(String::new());
    for name in all {
        let [short, long] = [format!("{name} --help"), format!("help {name}")]
            .map(|args| sandbox.run(&args).succeeds().stdout);
        assert!(short.lines().count() <= 100, "{name}: {short}");
        assert!(short.lines().count() < long.lines().count(), "{name}");
        let pointer = format!("`leasehold help {name}").trim_end().to_owned();
        assert!(short.contains(&pointer), "{name}: {short}");
        assert_eq!(sandbox.run(&format!("{name} -h")).stdout, short);
    }
}

#[test]
fn help_is_wrapped_to_a_narrow_terminal() {
    let sandbox = Sandbox::new();
    let help = sandbox
        .start_with(("COLUMNS", "60"), "help once")
        .wait()
        .stdout;
    let (wrapped, _) = help.split_once("Examples:").unwrap();
    for line in wrapped.lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn exit_status_and_environment_have_sections() {
    let sandbox = Sandbox::new();
    for name in all_subcommands(&sandbox) {
        let help = sandbox.run(&format!("help {name}")).stdout;
        let page = sandbox.run(&format!("man {name}")).stdout;
        for section in ["Examples", "Environment", "Exit status"] {
            if section == "Examples" && name == "fence" {
                continue;
            }
            assert!(help.contains(&format!("\n{section}:\n")), "{name}: {help}");
            let title = section.to_uppercase();
            let mut ways = [format!(".SH {title}\n"), format!(".SH \"{title}\"\n")].into_iter();
            assert!(
                ways.any(|way| page.contains(&way)),
                "{name} {title}: {page}"
            );
        }
        assert!(!page.contains("EXTRA"), "{name}: {page}");
    }
}

#[test]
fn commands_page_names_every_subcommand() {
    let sandbox = Sandbox::new();
    let page = include_str!("../../../../docs/commands.md");
    for name in all_subcommands(&sandbox) {
        let ways = [
            format!("`{name}`"),
            format!("`{name} "),
            format!("leasehold {name} "),
        ];
        assert!(ways.iter().any(|way| page.contains(way)), "{name}");
    }
}
