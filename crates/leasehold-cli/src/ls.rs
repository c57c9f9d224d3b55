use leasehold::{Pattern, Sight, Survey, SurveyedLock};
use serde_json::{Value, json};

use crate::config::{self, Environment};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::holder_text;
use crate::ls_args::LsArgs;
use crate::output::{self, Output};
use crate::status::runtime;
use crate::store_url::OpenStore;

/// Shows which locks are held, and by whom.
pub(crate) fn ls(args: &LsArgs, output: &Output) -> Result<ExitCode, Failure> {
    let choice = config::choose(&args.store, &Environment::read())?;
    let store = OpenStore::open(&choice)?;
    store.speak_up(output);
    let client = store.client();
    let survey = runtime()?.block_on(client.survey(&args.pattern, args.limit))?;
    let printed = if args.json {
        output::print_json(&object(&survey, &args.pattern, &client.describe()))
    } else {
        output::print(&lines(&survey, &args.pattern, args.limit))
    };
    printed.map_err(|error| Failure::of_stdout(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn lines(survey: &Survey, pattern: &Pattern, limit: usize) -> String {
    let mut lines = String::new();
    for lock in &survey.locks {
        lines += &format!("{}: {}\n", lock.key, phrase(lock, survey));
    }
    if survey.locks.is_empty() {
        lines += &format!(
            "no lock is held whose name matches {pattern:?}\n",
            pattern = pattern.to_string()
        );
    }
    if survey.more {
        lines += &format!("and more locks, which --limit {limit} leaves out\n");
    }
    for failure in &survey.failures {
        lines += &format!("not asked: {failure}\n");
    }
    lines
}

/// Who holds a lock; on several members, what they do not agree on.
fn phrase(lock: &SurveyedLock, survey: &Survey) -> String {
    let agreed = is_agreed(lock, survey);
    let held: Vec<&Sight> = holding(lock, survey).collect();
    let shown = if held.is_empty() {
        &lock.holders.iter().collect()
    } else {
        &held
    };
    let mut phrases: Vec<String> = shown
        .iter()
        .take(NAMED_MAX)
        .map(|sight| {
            let mut phrase = holder_text::phrase(&sight.holder);
            if sight.holder.form.is_some() {
                phrase += "; or the key is no lock";
            }
            if !agreed {
                phrase += &format!(" (on {} of {} members)", sight.members, survey.members);
            }
            phrase
        })
        .collect();
    if shown.len() > NAMED_MAX {
        phrases.push(format!("{} more", shown.len() - NAMED_MAX));
    }
    let phrases = phrases.join(" and ");
    let others = lock.holders.len() - held.len();
    match (held.is_empty(), others) {
        (true, _) => format!("held on no majority of members: {phrases}"),
        (false, 0) => format!("held by {phrases}"),
        (false, _) => format!("held by {phrases}; {others} more on a minority of members"),
    }
}

/// So many holders of one lock are named.
const NAMED_MAX: usize = 3;

/// Those who hold the lock: whom a majority names.
fn holding<'a>(lock: &'a SurveyedLock, survey: &Survey) -> impl Iterator<Item = &'a Sight> {
    let members = survey.members;
    lock.holders
        .iter()
        .filter(move |sight| sight.members > members / 2)
}

/// Whether all members that answered name the same holders.
fn is_agreed(lock: &SurveyedLock, survey: &Survey) -> bool {
    let answered = survey.members - survey.failures.len();
    let mut holders = lock.holders.iter();
    holders.all(|sight| sight.members == answered)
}

fn object(survey: &Survey, pattern: &Pattern, store: &str) -> Value {
    let lock = |lock: &SurveyedLock| {
        let holders = lock.holders.iter().map(|sight| {
            let mut holder = holder_text::json(&sight.holder);
            holder["members"] = sight.members.into();
            holder
        });
        json!({
            "lock": lock.key.as_str(),
            "held": holding(lock, survey).next().is_some(),
            "agreed": is_agreed(lock, survey),
            "holders": holders.collect::<Vec<_>>(),
        })
    };
    let unanswered = survey
        .failures
        .iter()
        .map(|failure| json!({"id": failure.id.as_str(), "reason": failure.error.reason()}));
    json!({
        "version": 1,
        "store": store,
        "pattern": pattern.to_string(),
        "members": survey.members,
        "unanswered": unanswered.collect::<Vec<_>>(),
        "more": survey.more,
        "locks": survey.locks.iter().map(lock).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use leasehold::{Error, ErrorKind, Holder, Key, MemberFailure, MemberId, Mode};

    /// A lock of five members, with so many of them naming each holder.
    fn survey(members: &[usize]) -> Survey {
        let holders = vec![Holder::unknown(Mode::Exclusive); members.len()];
        let mut lock = SurveyedLock::new(Key::new("deploy").unwrap(), holders);
        for (sight, members) in lock.holders.iter_mut().zip(members) {
            sight.members = *members;
        }
        let mut survey = Survey::new(vec![lock], false);
        survey.members = 5;
        survey
    }

    fn line(members: &[usize]) -> String {
        let survey = survey(members);
        phrase(&survey.locks[0], &survey)
    }

    #[test]
    fn what_members_do_not_agree_on_is_said() {
        let foreign = "a client of another library";
        assert_eq!(line(&[5]), format!("held by {foreign}"));
        assert_eq!(line(&[3]), format!("held by {foreign} (on 3 of 5 members)"));
        assert_eq!(
            line(&[3, 2]),
            format!("held by {foreign} (on 3 of 5 members); 1 more on a minority of members")
        );
        assert_eq!(
            line(&[2]),
            format!("held on no majority of members: {foreign} (on 2 of 5 members)")
        );
        let told = |members: &[usize]| {
            let value = object(&survey(members), &Pattern::all(), "quorum");
            let lock = &value["locks"][0];
            (
                lock["held"].as_bool().unwrap(),
                lock["agreed"].as_bool().unwrap(),
            )
        };
        assert_eq!(told(&[5]), (true, true));
        assert_eq!(told(&[3, 2]), (true, false));
        assert_eq!(told(&[2]), (false, false));
    }

    #[test]
    fn a_limit_that_left_something_out_is_said() {
        let mut survey = survey(&[5]);
        assert!(!lines(&survey, &Pattern::all(), 1).contains("--limit"));
        survey.more = true;
        let text = lines(&survey, &Pattern::all(), 1);
        assert!(
            text.ends_with("\nand more locks, which --limit 1 leaves out\n"),
            "{text}"
        );
        survey.locks.clear();
        survey.more = false;
        let text = lines(&survey, &Pattern::all(), 1);
        assert_eq!(text, "no lock is held whose name matches \"*\"\n");
    }
    #[test]
    fn who_did_not_answer_is_named_and_disagrees_with_nobody() {
        let mut survey = survey(&[3]);
        for name in ["m3", "m4"] {
            let error = Error::new(ErrorKind::Unreachable, "connection refused");
            let failure = MemberFailure::new(MemberId::new(name), error);
            survey.failures.push(failure);
        }
        let text = lines(&survey, &Pattern::all(), 9);
        let told: Vec<&str> = text.lines().collect();
        assert_eq!(told[0], "deploy: held by a client of another library");
        assert_eq!(told.len(), 3, "{text}");
        assert!(told[1].starts_with("not asked: m3"), "{text}");
        assert!(told[2].starts_with("not asked: m4"), "{text}");
        let value = object(&survey, &Pattern::all(), "quorum");
        assert_eq!(value["locks"][0]["agreed"], true);
        assert_eq!(value["unanswered"][1]["id"], "m4");
    }

    #[test]
    fn of_many_who_share_a_lock_the_first_are_named() {
        let text = line(&[5; 128]);
        assert_eq!(text.matches("another library").count(), 3);
        assert!(text.ends_with(" and 125 more"), "{text}");
        assert!(!line(&[5; 3]).contains("more"));
    }
}
