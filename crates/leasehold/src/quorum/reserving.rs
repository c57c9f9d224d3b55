use std::sync::Arc;
use std::time::Duration;

use crate::claim::Claim;
use crate::fence::Fence;
use crate::member::Seal;
use crate::quorum::ballot::majority;
use crate::quorum::link::{Dated, Link};
use crate::quorum::under_way::{UnderWay, unbroken};

/// Has the members count to `greatest`, as sealing a fence does, so that no later grant has one of those
/// up to there. `false` unless a majority did, on which the claim stands.
pub(crate) async fn reserve(
    links: &[Arc<Link>],
    claim: &Arc<Claim>,
    greatest: Fence,
    limit: Duration,
) -> bool {
    let mut under_way = UnderWay::with_capacity(links.len());
    for (place, link) in links.iter().enumerate() {
        let (link, claim) = (Arc::clone(link), Arc::clone(claim));
        under_way.push(async move {
            let sealed = unbroken(link.seal(&claim, greatest, limit)).await;
            (place, sealed)
        });
    }
    let mut sealed: Vec<(usize, Dated<Seal>)> = Vec::with_capacity(links.len());
    while let Some((place, answer)) = under_way.next().await {
        sealed.extend(answer.ok().map(|dated| (place, dated)));
        // All of them anew: one answer may throw doubt on another.
        let counts = |(place, dated): &&(usize, Dated<Seal>)| {
            dated.answer == Seal::Sealed && links[*place].counts(dated).is_ok()
        };
        if sealed.iter().filter(counts).count() >= majority(links.len()) {
            return true;
        }
    }
    false
}
