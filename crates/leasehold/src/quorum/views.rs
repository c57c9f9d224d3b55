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
    let asked: Vec<_> = links
        .iter()
        .map(|link| (link, background::spawn(question(Arc::clone(link)))))
        .collect();
    let (mut answers, mut failures) = (Vec::new(), Vec::new());
    for (link, answer) in asked {
        let answer = answer.await.unwrap_or_else(|error| {
            Err(Error::new(ErrorKind::Closed, "the question broke off").with_source(error))
        });
        match answer {
            Ok(answer) => answers.push(answer),
            Err(error) => failures.push(MemberFailure::new(link.member().id().clone(), error)),
        }
    }
    if answers.len() < majority(links.len()) {
        return Err(too_few(links.len(), 0, failures));
    }
    Ok(answers)
}

/// The holders that at least `needed` members name. A lease lives on a majority as long as that
/// majority's shortest part; holders of other libraries have no identity and count as one.
fn agreed_holders(answers: Vec<Vec<Holder>>, needed: usize) -> Vec<Holder> {
    let mut named = BTreeMap::<_, Vec<Holder>>::new();
    for holder in answers.into_iter().flatten() {
        named
            .entry((holder.owner, holder.mode))
            .or_default()
            .push(holder);
    }
    let mut agreed = Vec::new();
    for mut words in named.into_values().filter(|words| words.len() >= needed) {
        // `None` has no end: it sorts as the longest.
        words.sort_by_key(|word| {
            std::cmp::Reverse(word.remaining.map_or(u128::MAX, |r| r.as_nanos()))
        });
        let mut holder = words[needed - 1].clone();
        holder.client = words.iter().find_map(|word| word.client.clone());
        holder.fence = words.iter().filter_map(|word| word.fence).max();
        agreed.push(holder);
    }
    agreed
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
}
