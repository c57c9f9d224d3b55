use std::fmt::Write as _;
use std::time::Duration;

use leasehold::member::MemberId;
use serde_json::json;

use crate::commands::admin::members::args::MembersArgs;
use crate::commands::admin::members::ask_members::{ask_members, stated_set};
use crate::commands::admin::members::servers::{index_of, wait_after_change};
use crate::output;
use crate::output::exit_code::ExitCode;
use crate::output::failure::Failure;
use crate::output::time_text::millis;
use crate::output::time_text::whole_seconds;
use crate::runtime::runtime;
use crate::store::Quorum;

/// Gives a server that lost its data a new record, and says what that risks.
pub(super) fn readmit(
    args: &MembersArgs,
    quorum: &Quorum,
    member: &str,
) -> Result<ExitCode, Failure> {
    let id = &quorum.ids()[index_of(quorum, member)?];
    let (is_new, seen) = runtime()?.block_on(async {
        let is_new = quorum.readmit(id).await?;
        Ok::<_, Failure>((is_new, ask_members(quorum).await))
    })?;
    let silent = seen.iter().filter(|seen| seen.status.is_err());
    let outcome = ReadmitOutcome {
        id,
        is_new,
        wait: wait_after_change(&stated_set(quorum, &seen)),
        silent: silent.map(|seen| seen.id.to_string()).collect(),
    };
    let printed = if args.json {
        output::print_json(&outcome.json())
    } else {
        output::print(&outcome.text())
    };
    printed?;
    Ok(ExitCode::SUCCESS)
}

struct ReadmitOutcome<'a> {
    id: &'a MemberId,
    /// Whether a record was written.
    is_new: bool,
    /// For how long the server then has no vote.
    wait: Duration,
    /// The servers that do not answer.
    silent: Vec<String>,
}

impl ReadmitOutcome<'_> {
    fn text(&self) -> String {
        let id = self.id;
        if !self.is_new {
            return format!("{id} has its record of this quorum already: nothing was written\n");
        }
        let wait = whole_seconds(self.wait);
        let mut text = format!("{id} has a new record of this quorum, and no vote for {wait}\n");
        if !self.silent.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "Not checked, because silent: {}. If one of them belongs to another quorum by now, \
                 two clients can hold the same lock: stop {id} within {wait}.",
                self.silent.join(", ")
            );
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let wait = self.is_new.then(|| millis(self.wait));
        json!({
            "member": self.id.as_str(),
            "readmitted": self.is_new,
            "no_vote_for_ms": wait,
            "silent": self.silent,
        })
    }
}
