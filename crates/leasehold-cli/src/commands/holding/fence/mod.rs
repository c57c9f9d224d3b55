//! `leasehold fence`: checks fences for shell scripts that write to a protected resource.

pub(crate) mod args;
mod high_water;

use std::ffi::OsString;
use std::time::Duration;

use leasehold::Fence;
use serde_json::json;

use crate::commands::holding::fence::args::{FenceAction, FenceArgs, FenceCheckArgs};
use crate::output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::runtime::runtime;
use high_water::{HighWater, Verdict};

/// How long to wait for another check of the same file, which may be slow or stopped.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Runs a subcommand of `fence`.
pub(crate) fn fence(args: &FenceArgs) -> Result<ExitCode, Failure> {
    match &args.action {
        FenceAction::Check(args) => check(args),
    }
}

fn check(args: &FenceCheckArgs) -> Result<ExitCode, Failure> {
    let token = match args.token {
        Some(token) => token,
        None => of_environment(std::env::var_os("LEASEHOLD_FENCE"))?,
    };
    let file = HighWater::at(&args.high_water)?;
    let verdict = runtime()?.block_on(file.check(token, WAIT_MAX))?;
    if args.json {
        let (before, high_water) = match verdict {
            Verdict::Passes { before } => (before, token),
            Verdict::OlderThan(greatest) => (Some(greatest), greatest),
        };
        let printed = output::print_json(&json!({
            "token": token.get(),
            "passes": matches!(verdict, Verdict::Passes { .. }),
            "high_water": high_water.get(),
            "before": before.map(Fence::get),
        }));
        printed?;
    }
    match verdict {
        Verdict::Passes { .. } => Ok(ExitCode::SUCCESS),
        Verdict::OlderThan(_) if args.json => Ok(ExitCode::LOST),
        Verdict::OlderThan(greatest) => {
            let file = args.high_water.display();
            let text = format!(
                "fence {token} is older than {greatest}, which {file} has seen: a later holder was here, so do not write"
            );
            Err(Failure::new(ExitCode::LOST, text))
        }
    }
}

/// The fence in the environment.
fn of_environment(value: Option<OsString>) -> Result<Fence, Failure> {
    let Some(value) = value else {
        return Err(Failure::usage(
            "no fence; give TOKEN, or run this under `leasehold run`, which sets LEASEHOLD_FENCE",
        ));
    };
    let text = value.to_string_lossy();
    let fence = args::fence(&text);
    fence.map_err(|rule| Failure::usage(format!("LEASEHOLD_FENCE {text:?}: {rule}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_of_the_outer_run_is_the_default() {
        let fence = of_environment(Some("1763637400000001".into())).unwrap();
        assert_eq!(fence.get(), 1_763_637_400_000_001);
        for (value, part) in [
            (None, "give TOKEN"),
            (Some(""), r#"LEASEHOLD_FENCE """#),
            (Some("7x"), r#"LEASEHOLD_FENCE "7x": a fence is a number"#),
        ] {
            let failure = of_environment(value.map(Into::into)).unwrap_err();
            assert_eq!(failure.code, ExitCode::USAGE);
            assert!(failure.to_string().contains(part), "{failure}");
        }
    }
}
