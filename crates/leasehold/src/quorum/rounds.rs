use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::attempt::{LostReason, Release, Renewal};
use crate::background;
use crate::claim::{Claim, Held};
use crate::error::Error;
use crate::member::{MemberFailure, MemberId};
use crate::quorum::election::too_few;
use crate::quorum::link::Link;
use crate::quorum::tally::{Tally, Verdict, Word};

/// Renews leases on all members at once; done when each one's fate is decided.
pub(crate) async fn renew(links: &[Arc<Link>], leases: &[Held], limit: Duration) -> Vec<Renewal> {
    let shared: Arc<[Held]> = leases.into();
    let (outbox, mut inbox) = mpsc::unbounded_channel();
    for link in links {
        let (link, leases, outbox) = (Arc::clone(link), Arc::clone(&shared), outbox.clone());
        background::spawn(async move {
            let answers = link.renew(&leases, limit).await;
            let _ = outbox.send((link.member().id().clone(), answers));
        });
    }
    drop(outbox);
    let mut fates: Vec<Fate> = leases.iter().map(|_| Fate::new(links.len())).collect();
    while fates
        .iter()
        .any(|fate| fate.tally.verdict() == Verdict::Open)
        && let Some((id, answers)) = inbox.recv().await
    {
        match answers {
            Ok(answers) => {
                for (fate, answer) in fates.iter_mut().zip(answers) {
                    fate.count(&id, answer);
                }
            }
            Err(error) => {
                for fate in &mut fates {
                    fate.count(&id, Renewal::Unknown(error.clone()));
                }
            }
        }
    }
    fates.into_iter().map(Fate::renewal).collect()
}

/// What the members say of one lease.
struct Fate {
    members: usize,
    tally: Tally,
    failures: Vec<MemberFailure>,
}

impl Fate {
    fn new(members: usize) -> Self {
        Self {
            members,
            tally: Tally::new(members),
            failures: Vec::new(),
        }
    }

    fn count(&mut self, id: &MemberId, answer: Renewal) {
        self.tally.count(match answer {
            Renewal::Renewed => Word::Stood,
            Renewal::Lost(reason) => Word::Lost(reason),
            Renewal::Unknown(error) => {
                self.failures.push(MemberFailure::new(id.clone(), error));
                Word::Unknown
            }
        });
    }

    fn renewal(self) -> Renewal {
        match self.tally.verdict() {
            Verdict::Stood => Renewal::Renewed,
            Verdict::Lost(reason) => Renewal::Lost(reason),
            Verdict::Open | Verdict::Unknown => {
                Renewal::Unknown(too_few(self.members, self.failures).with_unknown_effect())
            }
        }
    }
}

/// Frees a claim on all members at once; done when a majority decided. Members that did not answer
/// are followed up in the background.
pub(crate) async fn release(
    links: &[Arc<Link>],
    claim: &Claim,
    limit: Duration,
) -> Result<Release, Error> {
    let claim = Arc::new(claim.clone());
    let (outbox, mut inbox) = mpsc::unbounded_channel();
    for link in links {
        let outbox = outbox.clone();
        let id = link.member().id().clone();
        let first = move |outcome| {
            let _ = outbox.send((id, outcome));
        };
        link.start_freeing(&claim, limit, first);
    }
    drop(outbox);
    let mut tally = Tally::new(links.len());
    let mut failures = Vec::new();
    while tally.verdict() == Verdict::Open
        && let Some((id, outcome)) = inbox.recv().await
    {
        tally.count(match outcome {
            Ok(Release::Released) => Word::Stood,
            Ok(Release::WasLost) => Word::Lost(LostReason::Gone),
            Err(error) => {
                failures.push(MemberFailure::new(id, error));
                Word::Unknown
            }
        });
    }
    match tally.verdict() {
        Verdict::Stood => Ok(Release::Released),
        Verdict::Lost(_) => Ok(Release::WasLost),
        Verdict::Open | Verdict::Unknown => {
            Err(too_few(links.len(), failures).with_unknown_effect())
        }
    }
}
