use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

use crate::attempt::{LostReason, Release, Renewal};
use crate::background;
use crate::claim::{Claim, Held, Mode};
use crate::error::{Error, ErrorKind};
use crate::member::{MemberFailure, MemberId};
use crate::queue::Departure;
use crate::quorum::election::too_few;
use crate::quorum::link::{Dated, Link};
use crate::quorum::tally::{Tally, Verdict, Word};
use crate::quorum::under_way::UnderWay;
use crate::quorum::waiting::Vigil;
use crate::telemetry::spans;

/// Renews leases on all members at once; done when each one's fate is decided. What a minority
/// forgot is put back behind the caller's back, once all have answered.
pub(crate) async fn renew(links: &[Arc<Link>], leases: &[Held], limit: Duration) -> Vec<Renewal> {
    let (decided, renewals) = oneshot::channel();
    let round = Round {
        links: links.to_vec(),
        leases: leases.into(),
        limit,
        fates: leases.iter().map(|_| Fate::new(links.len())).collect(),
    };
    // In a task of its own, and still within the span of whoever asks.
    let span = spans::round_of_renewals(leases.len(), links.len());
    background::spawn(round.run(decided).instrument(span));
    renewals.await.unwrap_or_else(|_| {
        let broken = Error::new(ErrorKind::Closed, "the renewal broke off").with_unknown_effect();
        vec![Renewal::Unknown(broken); leases.len()]
    })
}

/// One renewal of several leases over all members.
struct Round {
    links: Vec<Arc<Link>>,
    leases: Arc<[Held]>,
    limit: Duration,
    fates: Vec<Fate>,
}

type Answer = Result<Dated<Vec<Renewal>>, Error>;

impl Round {
    async fn run(mut self, decided: oneshot::Sender<Vec<Renewal>>) {
        let (outbox, mut inbox) = mpsc::unbounded_channel();
        for (place, link) in self.links.iter().enumerate() {
            let (link, leases) = (Arc::clone(link), Arc::clone(&self.leases));
            let (outbox, limit) = (outbox.clone(), self.limit);
            link.begin_renewing(&leases);
            background::spawn(async move {
                let answers = link.renew(&leases, limit).await;
                let _ = outbox.send((place, answers));
            });
        }
        drop(outbox);
        let mut decided = Some(decided);
        while let Some((place, answer)) = inbox.recv().await {
            self.count(place, &answer);
            let open = |fate: &Fate| fate.tally.verdict() == Verdict::Open;
            if !self.fates.iter().any(open)
                && let Some(decided) = decided.take()
            {
                let renewals = self.fates.iter().map(Fate::renewal).collect();
                // Nobody hears it where the keeper gave up waiting.
                let _ = decided.send(renewals);
            }
        }
        self.heal().await;
    }

    fn count(&mut self, place: usize, answer: &Answer) {
        let link = &self.links[place];
        let doubt = match answer {
            Ok(dated) => link.doubt(dated),
            Err(error) => Some(error.clone()),
        };
        spans::answered(link.member().id(), || match (answer, &doubt) {
            (_, Some(error)) | (Err(error), None) => Err(error),
            (Ok(dated), None) => Ok(in_a_word(&dated.answer)),
        });
        let words = answer.as_ref().map(|dated| dated.answer.as_slice());
        for (index, fate) in self.fates.iter_mut().enumerate() {
            let word = words.ok().and_then(|words| words.get(index));
            fate.count(place, link.member().id(), word, doubt.as_ref());
        }
    }

    /// Puts leases back where they were free, beside a majority on which they stood: on members
    /// whose answers count, and for the next round to count.
    async fn heal(self) {
        let healing = self.links.iter().enumerate().map(|(place, link)| {
            // The fate first: mostly it is enough, and the claim need not be looked at.
            let forgotten = self.leases.iter().zip(&self.fates).filter(|(held, fate)| {
                fate.forgotten_at.contains(&place)
                    && fate.tally.verdict() == Verdict::Stood
                    && held.claim.mode == Mode::Exclusive
                    && held.claim.heals
            });
            let leases: Vec<Held> = forgotten.map(|(held, _)| held.clone()).collect();
            async {
                link.heal(leases, self.limit).await;
                link.end_renewing(&self.leases);
            }
        });
        join_all(healing).await;
    }
}

fn in_a_word(answers: &[Renewal]) -> &'static str {
    if answers.iter().all(|it| matches!(it, Renewal::Renewed)) {
        "renewed"
    } else {
        "not all renewed"
    }
}

/// What the members say of one lease.
struct Fate {
    members: usize,
    tally: Tally,
    failures: Vec<MemberFailure>,
    /// The places of members that count, and where the key was free.
    forgotten_at: Vec<usize>,
}

impl Fate {
    fn new(members: usize) -> Self {
        Self {
            members,
            tally: Tally::new(members),
            failures: Vec::new(),
            forgotten_at: Vec::new(),
        }
    }

    /// Takes in a member's word, `None` if there was none. `doubt` says why a lease that stood
    /// there does not count, and nothing may be put back.
    fn count(
        &mut self,
        place: usize,
        id: &MemberId,
        word: Option<&Renewal>,
        doubt: Option<&Error>,
    ) {
        let unknown = |error: &Error| MemberFailure::new(id.clone(), error.clone());
        self.tally.count(match (word, doubt) {
            (Some(Renewal::Lost(reason)), doubt) => {
                if *reason == LostReason::Gone && doubt.is_none() {
                    self.forgotten_at.push(place);
                }
                Word::Lost(*reason)
            }
            (Some(Renewal::Renewed), None) => Word::Stood,
            (Some(Renewal::Unknown(error)), _) | (_, Some(error)) => {
                self.failures.push(unknown(error));
                Word::Unknown
            }
            (None, None) => {
                let short = Error::new(ErrorKind::Garbled, "not one answer per lease");
                self.failures.push(unknown(&short));
                Word::Unknown
            }
        });
    }

    fn renewal(&self) -> Renewal {
        match self.tally.verdict() {
            Verdict::Stood => Renewal::Renewed,
            Verdict::Lost(reason) => Renewal::Lost(reason),
            Verdict::Open | Verdict::Unknown => {
                let error = too_few(self.members, 0, self.failures.clone());
                Renewal::Unknown(error.with_unknown_effect())
            }
        }
    }
}

/// How a claim is given back.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) departure: Departure,
    /// Its wait, if that is over with it.
    pub(crate) wait: Option<Arc<Vigil>>,
}

/// Frees a claim on all members at once; done when a majority decided. Members that did not answer
/// are followed up in the background.
pub(crate) fn release(
    links: &[Arc<Link>],
    claim: &Claim,
    leaving: Leaving,
    limit: Duration,
) -> impl Future<Output = Result<Release, Error>> + Send + use<> {
    let claim = Arc::new(claim.clone());
    let mut under_way = UnderWay::with_capacity(links.len());
    for (place, link) in links.iter().enumerate() {
        let departure = leaving.departure;
        let freeing = link.free(&claim, move || departure, leaving.wait.clone(), limit);
        under_way.push(freeing.map(move |outcome| (place, outcome)));
    }
    freed(links.to_vec(), under_way)
}

async fn freed(
    links: Vec<Arc<Link>>,
    mut under_way: UnderWay<(usize, Result<Release, Error>)>,
) -> Result<Release, Error> {
    let mut tally = Tally::new(links.len());
    let mut failures = Vec::new();
    while tally.verdict() == Verdict::Open
        && let Some((place, outcome)) = under_way.next().await
    {
        let word = |outcome: &Release| match outcome {
            Release::Released => "released",
            Release::WasLost => "was lost",
        };
        spans::answered(links[place].member().id(), || outcome.as_ref().map(word));
        tally.count(match outcome {
            Ok(Release::Released) => Word::Stood,
            Ok(Release::WasLost) => Word::Lost(LostReason::Gone),
            Err(error) => {
                let id = links[place].member().id().clone();
                failures.push(MemberFailure::new(id, error));
                Word::Unknown
            }
        });
    }
    match tally.verdict() {
        Verdict::Stood => Ok(Release::Released),
        Verdict::Lost(_) => Ok(Release::WasLost),
        Verdict::Open | Verdict::Unknown => {
            Err(too_few(links.len(), 0, failures).with_unknown_effect())
        }
    }
}
