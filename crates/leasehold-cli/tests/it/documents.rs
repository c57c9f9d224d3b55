use std::process::Command;

use crate::support::harness::Sandbox;

#[test]
fn every_shell_has_completions_that_bash_loads() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ended = sandbox.run(&["completions", shell]);
        assert_eq!(ended.code(), 0);
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
        ("bench", "renewals_per_s"),
        ("elect", "campaigns"),
        ("members", "remove"),
    ] {
        let page = sandbox.run(&["man", subcommand]).stdout;
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// The subcommands that the help of `subcommand` lists; those of the program if `subcommand` is empty.
fn subcommands_of(sandbox: &Sandbox, subcommand: &[&str]) -> Vec<String> {
    let help = sandbox.run(&[subcommand, &["--help"]].concat()).stdout;
    let Some((_, listed)) = help.split_once("\nCommands:\n") else {
        return Vec::new();
    };
    let listed = listed.lines().take_while(|line| line.starts_with("  "));
    // The description of a subcommand may continue on another line, which is indented further.
    let names = listed.filter(|line| !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().unwrap().to_owned());
    names.filter(|name| name != "help").collect()
}

/// The long options that the help of `subcommand` lists.
fn options_of(sandbox: &Sandbox, subcommand: &[&str]) -> Vec<String> {
    let help = sandbox.run(&[subcommand, &["--help"]].concat()).stdout;
    let (_, listed) = help.split_once("\nOptions:\n").unwrap();
    let listed = listed.split("\n\nEnvironment:").next().unwrap();
    // The descriptions of options are indented further.
    let lines = listed.lines().filter(|line| !line.starts_with("        "));
    let words =
        lines.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")));
    words.map(str::to_owned).collect()
}

/// All subcommands, those of other subcommands too, each with the words that name it.
fn all_subcommands(sandbox: &Sandbox) -> Vec<Vec<String>> {
    let mut all = vec![vec![]];
    for number in 0.. {
        let Some(words) = all.get(number).cloned() else {
            break;
        };
        let subcommand: Vec<&str> = words.iter().map(String::as_str).collect();
        let inner = subcommands_of(sandbox, &subcommand).into_iter();
        all.extend(inner.map(|word| [words.clone(), vec![word]].concat()));
    }
    all.split_off(1)
}

#[test]
fn pages_and_completions_have_all_options() {
    let sandbox = Sandbox::new();
    let shells = ["bash", "zsh", "fish", "elvish", "powershell"];
    let scripts = shells.map(|shell| sandbox.run(&["completions", shell]).stdout);
    let all = all_subcommands(&sandbox);
    for known in [vec!["run"], vec!["members", "add"], vec!["fence", "check"]] {
        assert!(
            all.iter().any(|subcommand| *subcommand == known),
            "{known:?}: {all:?}"
        );
    }
    for words in &all {
        let subcommand: Vec<&str> = words.iter().map(String::as_str).collect();
        let page = sandbox.run(&[&["man"], &*subcommand].concat()).stdout;
        let title = format!(".TH leasehold-{} 1", subcommand.join("-"));
        assert!(page.contains(&title), "{subcommand:?}: {page}");
        let page = page.replace('\\', "");
        let options = options_of(&sandbox, &subcommand);
        assert!(options.iter().any(|it| it == "--help"), "{subcommand:?}");
        for option in options {
            assert!(page.contains(&option), "{subcommand:?} {option}: {page}");
            let word = option.trim_start_matches('-');
            for (shell, script) in shells.iter().zip(&scripts) {
                assert!(script.contains(word), "{shell}: {subcommand:?} {option}");
            }
            // For these, each line of fish names its subcommand.
            let of_subcommand = format!("_using_subcommand {}", subcommand[0]);
            let mut lines = scripts[2]
                .lines()
                .filter(|line| line.contains(&of_subcommand));
            let is_long = format!(" -l {word}");
            assert!(
                lines.any(|line| line.contains(&is_long)),
                "{subcommand:?} {option}"
            );
        }
    }
}

#[test]
fn every_help_fits_one_hundred_columns() {
    let sandbox = Sandbox::new();
    let mut all = all_subcommands(&sandbox);
    all.push(Vec::new());
    for words in all {
        let subcommand: Vec<&str> = words.iter().map(String::as_str).collect();
        for option in ["-h", "--help"] {
            let help = sandbox.run(&[&*subcommand, &[option]].concat()).stdout;
            for line in help.lines() {
                assert!(line.chars().count() <= 100, "{subcommand:?}: {line}");
            }
            let about = help.lines().next().unwrap();
            assert!(about.chars().count() <= 60, "{subcommand:?}: {about}");
        }
    }
}

#[test]
fn help_is_wrapped_to_a_narrow_terminal() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.leasehold();
    command.env("COLUMNS", "60").args(["once", "--help"]);
    let help = sandbox.spawn(command).wait().stdout;
    let (wrapped, _) = help.split_once("Examples:").unwrap();
    for line in wrapped.lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn exit_status_and_environment_have_sections() {
    let sandbox = Sandbox::new();
    for words in all_subcommands(&sandbox) {
        let subcommand: Vec<&str> = words.iter().map(String::as_str).collect();
        let help = sandbox.run(&[&*subcommand, &["--help"]].concat()).stdout;
        let page = sandbox.run(&[&["man"], &*subcommand].concat()).stdout;
        for section in ["Examples", "Environment", "Exit status"] {
            if section == "Examples" && subcommand == ["fence"] {
                continue;
            }
            assert!(
                help.contains(&format!("\n{section}:\n")),
                "{subcommand:?}: {help}"
            );
            let title = section.to_uppercase();
            let ways = [format!(".SH {title}\n"), format!(".SH \"{title}\"\n")];
            let found = ways.iter().any(|way| page.contains(way));
            assert!(found, "{subcommand:?} {title}: {page}");
        }
        assert!(!page.contains("EXTRA"), "{subcommand:?}: {page}");
    }
}

#[test]
fn commands_page_names_every_subcommand() {
    let sandbox = Sandbox::new();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    let page = std::fs::read_to_string(page).unwrap();
    for words in all_subcommands(&sandbox) {
        let name = words.join(" ");
        let mut ways = [
            format!("`{name}`"),
            format!("`{name} "),
            format!("leasehold {name} "),
        ]
        .into_iter();
        assert!(ways.any(|way| page.contains(&way)), "{name}");
    }
}
