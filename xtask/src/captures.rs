use crate::Failure;
use crate::setup;
use crate::step::{cargo, succeed};
use crate::suite;
use crate::workspace::Workspace;

/// Draws the README's pictures from what the program shows on terminals. With `--check` it only compares
/// the existing pictures, as a test of the gate does.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let wish = wish(arguments)?;
    setup::run(workspace, &["redis-py", "postgres"].map(str::to_owned))?;
    let mut tests = cargo(workspace, &ARGUMENTS);
    suite::equip(&mut tests, workspace)?;
    Ok(succeed(tests.env("LEASEHOLD_CAPTURES", wish))?)
}

const ARGUMENTS: [&str; 10] = [
    "test",
    "--quiet",
    "--locked",
    "--package",
    "leasehold-cli",
    "--test",
    "captures",
    "--",
    "--nocapture",
    "redis_scenes::",
];

/// The order for the tests: to draw the pictures, or to check them.
fn wish(arguments: &[String]) -> Result<&'static str, Failure> {
    match arguments {
        [] => Ok("draw"),
        [check] if check == "--check" => Ok("check"),
        _ => Err(Failure::Usage(format!(
            "captures takes --check or nothing, not {:?}",
            arguments.join(" ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_unless_that_is_what_was_asked_for() {
        let wish = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            wish(&words).ok()
        };
        assert_eq!(wish(&[]), Some("draw"));
        assert_eq!(wish(&["--check"]), Some("check"));
        assert_eq!(wish(&["--chek"]), None);
        assert_eq!(wish(&["--check", "doctor"]), None);
    }
}
