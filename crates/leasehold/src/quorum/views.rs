//! What people see of a quorum's locks: only what a majority of members agrees on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::BoxFuture;
use crate::background;
use crate::error::{Error, ErrorKind};
use crate::holder::Holder;
use crate::key::Key;
use crate::member::MemberFailure;
use crate::queue::Waiter;
use crate::quorum::ballot::majority;
use crate::quorum::election::too_few;
use crate::quorum::link::Link;

pub(crate) async fn holders(links: &[Arc<Link>], key: &Key) -> Result<Vec<Holder>, Error> {
    let answers = ask_all(links, |link| {
        let key = key.clone();
        Box::pin(async move { link.holders(&key).await })
    })
    .await?;
    Ok(agreed_holders(answers, majority(links.len())))
}

pub(crate) async fn list(
    links: &[Arc<Link>],
    prefix: &str,
    limit: usize,
) -> Result<Vec<Key>, Error> {
    let answers = ask_all(links, |link| {
        let prefix = prefix.to_owned();
        Box::pin(async move { link.list(&prefix).await })
    })
    .await?;
    let mut seen = BTreeMap::<Key, usize>::new();
    for key in answers.into_iter().flatten() {
        *seen.entry(key).or_default() += 1;
    }
    let needed = majority(links.len());
    let held = seen.into_iter().filter(|(_, members)| *members >= needed);
    Ok(held.map(|(key, _)| key).take(limit).collect())
}

/// Who waits, as a majority of members names it. A reservation may have taken one from some queues
/// already: it counts all the same.
pub(crate) async fn waiters(links: &[Arc<Link>], key: &Key) -> Result<Vec<Waiter>, Error> {
    let answers = ask_all(links, |link| {
        let key = key.clone();
        Box::pin(async move { link.waiters(&key).await })
    })
    .await?;
    let mut named = BTreeMap::<_, Vec<Waiter>>::new();
    for waiter in answers.into_iter().flatten() {
        named.entry(waiter.ticket).or_default().push(waiter);
    }
    let needed = majority(links.len());
    let agreed = named.into_values().filter(|words| words.len() >= needed);
    Ok(agreed.filter_map(best_named).collect())
}

/// The word of a member that knows who it is, if one does.
fn best_named(mut words: Vec<Waiter>) -> Option<Waiter> {
    let known = words.iter().position(|word| word.client.is_some());
    (!words.is_empty()).then(|| words.swap_remove(known.unwrap_or(0)))
}

/// Asks every member the same and waits for all answers, each within its limit.
async fn ask_all<T: Send + 'static>(
    links: &[Arc<Link>],
    question: impl Fn(Arc<Link>) -> BoxFuture<'static, Result<T, Error>>,
) -> Result<Vec<T>, Error> {
    let answers = ask_each(links, question).await;
    answers.of_a_majority().map(|(answers, _)| answers)
}

/// What all members were asked for, of those who answered, and why others did not.
pub(crate) struct Answers<T> {
    pub(crate) given: Vec<T>,
    pub(crate) failures: Vec<MemberFailure>,
}

impl<T> Answers<T> {
    /// The answers and failures if a majority answered.
    pub(crate) fn of_a_majority(self) -> Result<(Vec<T>, Vec<MemberFailure>), Error> {
        let members = self.given.len() + self.failures.len();
        if self.given.len() < majority(members) {
            return Err(too_few(members, 0, self.failures));
        }
        Ok((self.given, self.failures))
    }
}

/// [`ask_all`], whether or not a majority answers.
pub(crate) async fn ask_each<T: Send + 'static>(
    links: &[Arc<Link>],
    question: impl Fn(Arc<Link>) -> BoxFuture<'static, Result<T, Error>>,
) -> Answers<T> {
    let asked: Vec<_> = links
        .iter()
        .map(|link| (link, background::spawn(question(Arc::clone(link)))))
        .collect();
    let (mut given, mut failures) = (Vec::new(), Vec::new());
    for (link, answer) in asked {
        let answer = answer.await.unwrap_or_else(|error| {
            Err(Error::new(ErrorKind::Closed, "the question broke off").with_source(error))
        });
        match answer {
            Ok(answer) => given.push(answer),
            Err(error) => failures.push(MemberFailure::new(link.member().id().clone(), error)),
        }
    }
    Answers { given, failures }
}

/// The holders that at least `needed` members name; those of other libraries have no identity and
/// count as one.
fn agreed_holders(answers: Vec<Vec<Holder>>, needed: usize) -> Vec<Holder> {
    by_holder(answers.into_iter().flatten())
        .filter(|words| words.len() >= needed)
        .filter_map(|words| together(words, needed))
        .collect()
}

/// What members say of each holder.
pub(crate) fn by_holder(
    words: impl IntoIterator<Item = Holder>,
) -> impl Iterator<Item = Vec<Holder>> {
    let mut named = BTreeMap::<_, Vec<Holder>>::new();
    for word in words {
        named.entry((word.owner, word.mode)).or_default().push(word);
    }
    named.into_values()
}

/// What members say of one holder, together. A lease lives on a majority of `needed` as long as that
/// majority's shortest part, and it is broken once those where it is not are none.
pub(crate) fn together(mut words: Vec<Holder>, needed: usize) -> Option<Holder> {
    // `None` has no end: it sorts as the longest.
    words.sort_by_key(|word| {
        std::cmp::Reverse(word.remaining.map_or(u128::MAX, |left| left.as_nanos()))
    });
    let unbroken = words.iter().filter(|word| !word.broken).count();
    let mut holder = words.get(needed - 1).or(words.first())?.clone();
    holder.client = words.iter().find_map(|word| word.client.clone());
    holder.fence = words.iter().filter_map(|word| word.fence).max();
    holder.broken = unbroken < words.len() && unbroken < needed;
    Some(holder)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ambient::SystemEntropy;
    use crate::claim::Mode;
    use crate::owner::{ClientId, Owner};

    fn held(owner: Owner, remaining: u64) -> Vec<Holder> {
        let mut holder = Holder::unknown(Mode::Exclusive);
        holder.owner = Some(owner);
        holder.remaining = Some(Duration::from_secs(remaining));
        vec![holder]
    }

    #[test]
    fn only_what_a_majority_names_is_shown_with_the_time_a_majority_gives() {
        let owner = || Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy);
        let (holder, stray) = (owner(), owner());
        let answers = vec![
            held(holder, 9),
            held(stray, 99),
            held(holder, 5),
            held(holder, 7),
            vec![],
        ];
        let shown = agreed_holders(answers, 3);
        assert_eq!(shown.len(), 1);
        assert_eq!(shown[0].owner, Some(holder));
        assert_eq!(shown[0].remaining, Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_lease_is_broken_once_it_stands_whole_on_no_majority() {
        let owner = Owner::random(ClientId::random(&SystemEntropy), &SystemEntropy);
        let shown = |broken: usize| {
            let answers = (0..5).map(|member| {
                let mut words = held(owner, 9);
                words[0].broken = member < broken;
                words
            });
            agreed_holders(answers.collect(), 3)[0].broken
        };
        assert_eq!([0, 2, 3, 5].map(shown), [false, false, true, true]);
    }
}
