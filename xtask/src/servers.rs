use std::process::Stdio;

use crate::Failure;
use crate::setup;
use crate::step::{cargo, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// Runs the testkit's Redis servers until Ctrl-C, to try things out by hand.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let count = match arguments {
        [] => 5,
        [count] => count
            .parse::<u8>()
            .ok()
            .filter(|count| (1..=31).contains(count))
            .ok_or_else(|| {
                Failure::Usage(format!("the number of servers is 1 to 31, not {count:?}"))
            })?,
        _ => return Err(Failure::Usage("servers takes one number".into())),
    };
    let redis_alone = ["redis-py", "postgres"].map(str::to_owned);
    setup::run(workspace, &redis_alone)?;
    let mut servers = cargo(
        workspace,
        &[
            "run",
            "--quiet",
            "--package",
            "leasehold-testkit",
            "--bin",
            "leasehold-servers",
            "--",
        ],
    );
    suite::equip(&mut servers, workspace)?;
    Ok(succeed(
        servers.arg(count.to_string()).stdin(Stdio::inherit()),
    )?)
}
