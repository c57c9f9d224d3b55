//! The locks of all members: holders, waiters and held keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Quorum;
use super::ballot::majority;
use super::link::Link;
use super::views;
use crate::BoxFuture;
use crate::error::Error;
use crate::holder::Holder;
use crate::inspection::Inspection;
use crate::key::Key;
use crate::pattern::Pattern;
use crate::queue::Waiter;
use crate::survey::{Sight, Survey, SurveyedLock};

impl Inspection for Quorum {
    fn holders<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Holder>, Error>> {
        Box::pin(views::holders(&self.links, key))
    }

    fn waiters<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Vec<Waiter>, Error>> {
        Box::pin(views::waiters(&self.links, key))
    }

    fn list<'a>(&'a self, prefix: &'a str, limit: usize) -> BoxFuture<'a, Result<Vec<Key>, Error>> {
        Box::pin(views::list(&self.links, prefix, limit))
    }

    fn survey<'a>(
        &'a self,
        pattern: &'a Pattern,
        limit: usize,
    ) -> BoxFuture<'a, Result<Survey, Error>> {
        Box::pin(survey(&self.links, pattern, limit))
    }
}

async fn survey(links: &[Arc<Link>], pattern: &Pattern, limit: usize) -> Result<Survey, Error> {
    let asked = views::ask_each(links, |link| {
        let pattern = pattern.clone();
        Box::pin(async move { link.survey(&pattern, limit).await })
    });
    let (answers, failures) = asked.await.of_a_majority()?;
    let mut survey = merged(answers, limit, majority(links.len()));
    survey.members = links.len();
    survey.failures = failures;
    Ok(survey)
}

/// What the members' surveys say together. Each of them names its first locks up to the limit: a name
/// among the first of all is then among the first of each member that has it.
fn merged(answers: Vec<Survey>, limit: usize, needed: usize) -> Survey {
    let mut more = answers.iter().any(|answer| answer.more);
    let mut named = BTreeMap::<Key, Vec<Holder>>::new();
    for lock in answers.into_iter().flat_map(|answer| answer.locks) {
        let holders = lock.holders.into_iter().map(|sight| sight.holder);
        named.entry(lock.key).or_default().extend(holders);
    }
    more |= named.len() > limit;
    let locks = named.into_iter().take(limit).map(|(key, words)| {
        let mut holders: Vec<Sight> = views::by_holder(words)
            .filter_map(|words| {
                let members = words.len();
                let holder = views::together(words, needed)?;
                Some(Sight { holder, members })
            })
            .collect();
        holders.sort_by_key(|sight| std::cmp::Reverse(sight.members));
        SurveyedLock { key, holders }
    });
    Survey::new(locks.collect(), more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ambient::SystemEntropy;
    use crate::claim::Mode;
    use crate::owner::{ClientId, Owner};

    fn lock(name: &str, owner: Owner) -> SurveyedLock {
        let mut holder = Holder::unknown(Mode::Exclusive);
        holder.owner = Some(owner);
        SurveyedLock::new(Key::new(name).unwrap(), vec![holder])
    }

    #[test]
    fn locks_are_merged_by_name_with_how_many_members_name_each_holder() {
        let owner = || Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy);
        let (first, second) = (owner(), owner());
        // Who is named by most is not the first by name.
        let (one, two) = (first.max(second), first.min(second));
        let answers = vec![
            Survey::new(vec![lock("a", one), lock("b", two)], false),
            Survey::new(vec![lock("a", two), lock("c", one)], true),
            Survey::new(vec![lock("a", one)], false),
        ];
        let all = merged(answers.clone(), 9, 2);
        let names: Vec<_> = all.locks.iter().map(|lock| lock.key.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(all.more, "a member left some out");
        let [most, other] = &all.locks[0].holders[..] else {
            panic!("two owners: {:?}", all.locks[0])
        };
        assert_eq!((most.holder.owner, most.members), (Some(one), 2));
        assert_eq!((other.holder.owner, other.members), (Some(two), 1));
        let first = merged(answers[..1].to_vec(), 1, 1);
        assert_eq!((first.locks.len(), first.more), (1, true), "the limit did");
    }
}
