use std::sync::Arc;
use std::time::Duration;

use tracing::Span;

use crate::attempt::{Attempt, Busy, Grant};
use crate::claim::{Claim, Mode};
use crate::error::{Effect, Error, ErrorKind};
use crate::fence::Fence;
use crate::member::{MemberFailure, Seal};
use crate::queue::Departure;
use crate::quorum::ballot::{Ballot, Step, Vote, majority};
use crate::quorum::link::{Asking, Dated, Link};
use crate::quorum::slots::Sayings;
use crate::quorum::under_way::{UnderWay, unbroken};
use crate::telemetry::spans;

/// One attempt over all members: asks them at once and carries out what the ballot decides.
///
/// Requests that are still under way by then finish behind the caller's back.
pub(crate) struct Election<'a> {
    links: &'a [Arc<Link>],
    claim: Arc<Claim>,
    asking: Asking,
    limit: Duration,
    /// Around what the members answer, stragglers too.
    span: Span,
    ballot: Ballot,
    votes: Vec<Option<Result<Dated<Attempt>, Error>>>,
}

/// What a member answered.
enum News {
    Voted(usize, Result<Dated<Attempt>, Error>),
    Sealed(usize, Fence, Result<Dated<Seal>, Error>),
}

impl<'a> Election<'a> {
    pub(crate) fn new(
        links: &'a [Arc<Link>],
        claim: Arc<Claim>,
        asking: Asking,
        limit: Duration,
        span: Span,
    ) -> Self {
        let ballot = match claim.mode {
            Mode::Exclusive => Ballot::new(links.len()),
            Mode::Shared | Mode::Permit(_) => {
                Ballot::held_together(links.len(), claim.owner.luck())
            }
        };
        Self {
            links,
            claim,
            asking,
            limit,
            span,
            ballot,
            votes: links.iter().map(|_| None).collect(),
        }
    }

    pub(crate) async fn run(mut self) -> Result<Attempt, Error> {
        let mut under_way = UnderWay::with_capacity(self.links.len());
        for (index, link) in self.links.iter().enumerate() {
            let (link, claim, limit) = (Arc::clone(link), Arc::clone(&self.claim), self.limit);
            let (asking, announced) = (self.asking.clone(), link.announce(claim.owner));
            let vote = async move {
                let vote = unbroken(link.acquire(&claim, &asking, limit, announced)).await;
                tell(&link, &vote, |attempt| match attempt {
                    Attempt::Granted(_) => "granted",
                    Attempt::Busy(_) => "busy",
                });
                News::Voted(index, vote)
            };
            under_way.push_within(&self.span, vote);
        }
        loop {
            let Some(news) = under_way.next().await else {
                // All have answered, with which every ballot is decided.
                let text = "the members' answers broke off";
                return Err(Error::new(ErrorKind::Closed, text).with_unknown_effect());
            };
            match self.take_in(news) {
                Step::Wait => {}
                Step::Seal(fence, members) => self.seal(fence, members, &mut under_way),
                Step::Won(fence) => {
                    if let Asking::InTurn(vigil) = &self.asking {
                        vigil.hold(&self.claim, fence);
                    }
                    return Ok(Attempt::Granted(Grant::new(fence)));
                }
                Step::Busy => {
                    drop(under_way);
                    self.free_everywhere(true).await;
                    return Ok(Attempt::Busy(self.busy()));
                }
                Step::NoQuorum if self.permits_may_differ() => {}
                Step::NoQuorum => {
                    drop(under_way);
                    // Whoever is next may reach the members that this client cannot.
                    let freed = self.free_everywhere(false).await;
                    let error = self.no_quorum();
                    return Err(if freed {
                        error
                    } else {
                        error.with_unknown_effect()
                    });
                }
            }
        }
    }

    /// Whether those who have yet to answer may still say what no repetition will change: that so many
    /// members have other permits that no majority is left.
    fn permits_may_differ(&self) -> bool {
        let heard = self.votes.iter().flatten();
        let refused = heard.clone().filter_map(|vote| vote.as_ref().err());
        let differ = refused.filter(|it| it.kind() == ErrorKind::PermitsDiffer);
        let (total, differ) = (self.links.len(), differ.count());
        let open = total - heard.count();
        let needed = majority(total);
        open > 0 && differ > 0 && total - differ >= needed && total - differ - open < needed
    }

    fn take_in(&mut self, news: News) -> Step {
        match news {
            News::Voted(index, answer) => {
                let vote = match answer.as_ref().map(|dated| &dated.answer) {
                    Ok(Attempt::Granted(grant)) => Vote::Granted(grant.fence),
                    Ok(Attempt::Busy(_)) => Vote::Busy,
                    Err(_) => Vote::Failed,
                };
                self.votes[index] = Some(answer);
                self.ballot.vote(index, vote);
            }
            News::Sealed(index, fence, answer) => {
                let sealed = self.sealed(index, answer);
                self.ballot
                    .seal(index, fence, sealed.as_ref().ok().copied());
                if let Err(error) = sealed {
                    self.votes[index] = Some(Err(error.with_unknown_effect()));
                }
            }
        }
        let (links, votes) = (self.links, &self.votes);
        self.ballot.step(|index| match &votes[index] {
            Some(Ok(dated)) => links[index].counts(dated).is_ok(),
            _ => false,
        })
    }

    /// What a member that was asked to seal a fence answered, if that counts.
    fn sealed(&self, index: usize, answer: Result<Dated<Seal>, Error>) -> Result<Seal, Error> {
        let dated = answer?;
        if dated.answer == Seal::NotHeld {
            return Err(Error::new(
                ErrorKind::Unreachable,
                "the claim was gone before its fence was sealed",
            ));
        }
        let counts = self.links[index].counts(&dated);
        counts.map_err(|distrust| distrust.error())?;
        Ok(dated.answer)
    }

    fn seal(&self, fence: Fence, members: Vec<usize>, under_way: &mut UnderWay<News>) {
        for index in members {
            let (link, claim) = (Arc::clone(&self.links[index]), Arc::clone(&self.claim));
            let limit = self.limit;
            let sealing = async move {
                let sealed = unbroken(link.seal(&claim, fence, limit)).await;
                tell(&link, &sealed, |seal| match seal {
                    Seal::NotHeld => "not held",
                    _ => "sealed",
                });
                News::Sealed(index, fence, sealed)
            };
            under_way.push_within(&self.span, sealing);
        }
    }

    /// Frees the claim wherever it may hold, and waits for the members that are known to hold it.
    /// `false` if one of these did not say that it was freed. Whoever goes on waiting keeps its
    /// place, if `keeps_place`.
    async fn free_everywhere(&self, keeps_place: bool) -> bool {
        let (mut holding, mut others) = (UnderWay::with_capacity(0), UnderWay::with_capacity(0));
        for (place, (link, vote)) in self.links.iter().zip(&self.votes).enumerate() {
            let freeing = match vote {
                Some(Ok(dated)) if matches!(dated.answer, Attempt::Busy(_)) => continue,
                Some(Ok(_)) => &mut holding,
                Some(Err(error)) if error.effect() == Effect::None => continue,
                Some(Err(_)) | None => &mut others,
            };
            let asking = self.asking.clone();
            let departure = move || match &asking {
                Asking::InTurn(vigil) if keeps_place => vigil.departure(place),
                _ => Departure::HandOver,
            };
            freeing.push(link.free(&self.claim, departure, None, self.limit));
        }
        drop(others);
        let mut freed = true;
        while let Some(outcome) = holding.next().await {
            freed &= outcome.is_ok();
        }
        freed
    }

    /// The refusal that the most members gave, which is the holder if anybody is.
    fn busy(&self) -> Busy {
        let refusals: Vec<Busy> = self
            .votes
            .iter()
            .flatten()
            .filter_map(|vote| match &vote.as_ref().ok()?.answer {
                Attempt::Busy(busy) => Some(busy.clone()),
                Attempt::Granted(_) => None,
            })
            .collect();
        let weight = |busy: &Busy| refusals.iter().filter(|b| b.holder == busy.holder).count();
        let heaviest = refusals.iter().max_by_key(|busy| weight(busy));
        let mut busy = heaviest.cloned().unwrap_or_default();
        let free = refusals.iter().map(|busy| busy.free).collect();
        let named = Vec::new();
        busy.free = Sayings { named, free }.agreed();
        busy
    }

    fn no_quorum(self) -> Error {
        let total = self.links.len();
        let unknown = self.votes.iter().any(|vote| match vote {
            Some(Err(error)) => error.effect() == Effect::Unknown,
            Some(Ok(_)) => false,
            None => true,
        });
        let open = self.votes.iter().filter(|vote| vote.is_none()).count();
        let failures: Vec<MemberFailure> = self
            .links
            .iter()
            .zip(self.votes)
            .filter_map(|(link, vote)| link.failure(vote?))
            .collect();
        let error = too_few(total, open, failures);
        if unknown {
            error.with_unknown_effect()
        } else {
            error
        }
    }
}

fn tell<T>(link: &Link, answer: &Result<Dated<T>, Error>, word: impl Fn(&T) -> &'static str) {
    let outcome = || answer.as_ref().map(|dated| word(&dated.answer));
    spans::answered(link.member().id(), outcome);
}

/// The error of too few members: that of the only member, that other permits are held at so many that
/// no majority is left, one that all failed members share and that will not pass by itself, or no
/// quorum. `open`: how many were not heard when it was decided.
pub(crate) fn too_few(total: usize, open: usize, failures: Vec<MemberFailure>) -> Error {
    if let (1, [only]) = (total, failures.as_slice()) {
        return only.error.clone();
    }
    let differ = |failure: &&MemberFailure| failure.error.kind() == ErrorKind::PermitsDiffer;
    let differing: Vec<&MemberFailure> = failures.iter().filter(differ).collect();
    if total - differing.len() < majority(total)
        && let [first, ..] = differing.as_slice()
    {
        // They all say the same; whoever did not answer changes nothing.
        return Error::new(ErrorKind::PermitsDiffer, first.error.reason());
    }
    let shared = failures
        .first()
        .map(|failure| failure.error.kind())
        .filter(|kind| {
            !matches!(
                kind,
                ErrorKind::Unreachable
                    | ErrorKind::Untrusted
                    | ErrorKind::Garbled
                    | ErrorKind::Closed
            ) && failures.iter().all(|failure| failure.error.kind() == *kind)
        });
    let (counting, needed) = (total - failures.len(), majority(total));
    let text = if counting < needed {
        // Open requests may still fail.
        let most = if open > 0 && counting > 0 {
            "at most "
        } else {
            ""
        };
        format!("no quorum: {most}{counting} of {total} servers have a vote, {needed} needed")
    } else {
        // A lease may stand at some members and be gone at others.
        format!("no quorum: fewer than {needed} of {total} servers gave the same answer")
    };
    let lacking = needed.saturating_sub(counting);
    let mut again: Vec<Duration> = failures.iter().filter_map(|f| f.counts_again).collect();
    again.sort_unstable();
    let counts_again = lacking
        .checked_sub(1)
        .and_then(|last| again.get(last).copied());
    Error::new(shared.unwrap_or(ErrorKind::NoQuorum), text)
        .with_members(failures)
        .with_counts_again(counts_again)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::member::MemberId;

    fn text(total: usize, open: usize, failed: usize) -> String {
        let failure = |number| {
            let error = Error::new(ErrorKind::Unreachable, "silent");
            MemberFailure::new(MemberId::new(format!("m{number}")), error)
        };
        let error = too_few(total, open, (0..failed).map(failure).collect());
        assert_eq!(error.kind(), ErrorKind::NoQuorum);
        error.reason().to_owned()
    }

    #[test]
    fn no_quorum_says_what_is_lacking() {
        for (total, open, failed, lacking) in [
            (5, 0, 3, "2 of 5 servers have a vote, 3 needed"),
            (5, 1, 3, "at most 2 of 5 servers have a vote, 3 needed"),
            (4, 0, 2, "2 of 4 servers have a vote, 3 needed"),
            // Two had it, two had it not.
            (5, 0, 1, "fewer than 3 of 5 servers gave the same answer"),
            (4, 0, 0, "fewer than 3 of 4 servers gave the same answer"),
        ] {
            assert_eq!(text(total, open, failed), format!("no quorum: {lacking}"));
        }
    }
}
