use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::Notify;

use crate::ambient::Ambient;
use crate::background;
use crate::card::{Life, MemberSet};
use crate::clock::BootInstant;
use crate::error::Error;
use crate::health::MemberHealth;
use crate::member::{Incarnation, Member, MemberId, Presence, Sample};
use crate::quorum::limit::limited;
use crate::quorum::trust::{Between, CardStep, Distrust, Learned, Trust};
use crate::telemetry::MemberStandings;

/// The members with what is known of each: takes in what they show, keeps their cards, and says
/// whose answers count.
#[derive(Debug)]
pub(crate) struct Roster {
    members: Vec<Arc<dyn Member>>,
    ambient: Ambient,
    set: MemberSet,
    state: Mutex<State>,
    /// Told whenever more is known.
    learned: Notify,
}

#[derive(Debug)]
struct State {
    trust: Trust,
    /// Who has not said yet how it is.
    strangers: Vec<bool>,
    /// Whose card is being written or read in the background.
    busy: Vec<bool>,
    /// What was last logged of each.
    reasons: Vec<Option<String>>,
    /// What is shown of each.
    standings: MemberStandings,
}

impl Roster {
    pub(crate) fn new(
        members: Vec<Arc<dyn Member>>,
        set: MemberSet,
        enforced: bool,
        ambient: Ambient,
        standings: MemberStandings,
    ) -> Arc<Self> {
        let ids: Vec<MemberId> = members.iter().map(|member| member.id().clone()).collect();
        let count = ids.len();
        Arc::new(Self {
            members,
            ambient,
            state: Mutex::new(State {
                trust: Trust::new(ids, set.clone(), enforced),
                strangers: vec![true; count],
                busy: vec![false; count],
                reasons: vec![None; count],
                standings,
            }),
            set,
            learned: Notify::new(),
        })
    }

    pub(crate) fn members(&self) -> &[Arc<dyn Member>] {
        &self.members
    }

    pub(crate) fn set(&self) -> &MemberSet {
        &self.set
    }

    /// Whether only the answers of trusted members count.
    pub(crate) fn is_enforced(&self) -> bool {
        self.state().trust.is_enforced()
    }

    /// Whether the member must be asked how it is before it is asked for anything else: it never
    /// was, or what it said before `began` stands in the way, and may be over.
    pub(crate) fn must_meet(&self, member: usize, began: BootInstant) -> bool {
        let state = self.state();
        let obstacle = state.trust.may_ask(member).is_err();
        state.strangers[member] || obstacle && !state.trust.heard_since(member, began)
    }

    /// Whether the member has said how it is, and nothing stands in the way of asking it.
    pub(crate) fn is_open(&self, member: usize) -> bool {
        let state = self.state();
        !state.strangers[member] && state.trust.may_ask(member).is_ok()
    }

    /// Takes note that a member answered that it does not know how it is: of no concern unless the
    /// rules are enforced.
    pub(crate) fn has_no_presence(&self, member: usize, error: Error) -> Result<(), Error> {
        let mut state = self.state();
        if state.trust.is_enforced() || error.is_unreachable() {
            return Err(error);
        }
        state.strangers[member] = false;
        state.show_all(self.ambient.clock.now());
        Ok(())
    }

    /// Takes note that requests to the member begin to fail, or are answered again.
    pub(crate) fn failing(&self, member: usize, failing: bool) {
        self.state().standings.failing(member, failing);
    }

    /// Resolves once the member may be asked, or with why it may not. While the set is being
    /// formed it waits for that; its caller bounds it.
    pub(crate) async fn may_ask(&self, member: usize) -> Result<(), Distrust> {
        loop {
            // Before the look: what is learned after it wakes this.
            let learned = self.learned.notified();
            match self.state().trust.may_ask(member) {
                Err(Distrust::NotFormed { .. }) => {}
                verdict => return verdict.map_err(Clone::clone),
            }
            learned.await;
        }
    }

    /// Why the member may not be asked at this moment, if so.
    pub(crate) fn obstacle(&self, member: usize) -> Option<Distrust> {
        self.state().trust.may_ask(member).err().cloned()
    }

    /// Whether an answer counts that the member gave to a request sent at `sent`.
    pub(crate) fn counts(
        &self,
        member: usize,
        sent: BootInstant,
        incarnation: Option<&Incarnation>,
    ) -> Result<(), Distrust> {
        let mut state = self.state();
        let verdict = state.trust.counts(member, sent, incarnation);
        state.standings.judged(member, verdict.is_ok());
        state.log(member, verdict.as_ref().err(), &self.ambient);
        verdict
    }

    /// Whether the member said last that it keeps across a restart all that it acknowledges.
    pub(crate) fn is_durable(&self, member: usize) -> bool {
        self.state().trust.is_durable(member)
    }

    /// Whether a member that counts has lost nothing of what it was to keep for `retention`.
    pub(crate) fn remembers(
        &self,
        member: usize,
        sent: BootInstant,
        retention: Duration,
    ) -> Result<(), Distrust> {
        self.state().trust.remembers(member, sent, retention)
    }

    /// Takes in what a member says of itself, in answer to a question sent at `sent`.
    pub(crate) fn present(self: &Arc<Self>, member: usize, presence: Presence, sent: BootInstant) {
        let at = self.since(sent);
        let learned = {
            let mut state = self.state();
            state.strangers[member] = false;
            let learned = state.trust.present(member, presence, at);
            state.show_all(at.received);
            learned
        };
        self.note(member, learned);
        self.keep_cards();
        self.learned.notify_waiters();
    }

    /// Starts what the cards lack.
    fn keep_cards(self: &Arc<Self>) {
        let steps = {
            let mut state = self.state();
            let draw = &mut || Life::random(&*self.ambient.entropy);
            let mut steps = state.trust.card_steps(draw);
            let idle = !state.busy.contains(&true);
            steps.retain(|step| {
                let may = idle || !matches!(step, CardStep::Look(_));
                may && !std::mem::replace(&mut state.busy[step.member()], true)
            });
            steps
        };
        for step in steps {
            let roster = Arc::clone(self);
            background::spawn(async move { roster.carry_out(step).await });
        }
    }

    /// Takes in what a member showed beside an answer to a request sent at `sent`.
    pub(crate) fn sample(self: &Arc<Self>, member: usize, sample: &Sample, sent: BootInstant) {
        let at = self.since(sent);
        let (learned, look) = {
            let mut state = self.state();
            let learned = state.trust.sample(member, sample, at);
            let enforced = state.trust.is_enforced();
            if learned.must_look && !enforced {
                state.log_restart(member);
            }
            let look = learned.must_look && !std::mem::replace(&mut state.busy[member], true);
            (learned, look)
        };
        self.note(member, learned);
        if look {
            let roster = Arc::clone(self);
            background::spawn(async move { roster.carry_out(CardStep::Look(member)).await });
        }
    }

    /// How every member is, freshly asked.
    pub(crate) async fn health(self: &Arc<Self>) -> Vec<MemberHealth> {
        let asking = (0..self.members.len()).map(|member| async move {
            let sent = self.ambient.clock.now();
            let presence = self.ask(member).await;
            if let Ok(presence) = &presence {
                self.present(member, presence.clone(), sent);
            }
            (sent, presence)
        });
        let answers = join_all(asking).await;
        let health = answers
            .into_iter()
            .enumerate()
            .map(|(member, (sent, presence))| {
                let id = self.members[member].id().clone();
                let distrust = match &presence {
                    Ok(presence) => self
                        .counts(member, sent, Some(&presence.incarnation()))
                        .err(),
                    Err(_) => None,
                };
                let now = self.ambient.clock.now();
                let mut health = MemberHealth::new(id.clone(), presence);
                health.distrust = distrust.map(|distrust| distrust.failure(&id, now));
                health
            });
        health.collect()
    }

    async fn carry_out(self: Arc<Self>, step: CardStep) {
        let member = step.member();
        let handle = &self.members[member];
        let done = match &step {
            CardStep::Write(_, edit) => limited(&self.ambient, handle.write_card(edit))
                .await
                .map(|_| ()),
            CardStep::Witness(_, seen) => limited(&self.ambient, handle.witness(seen)).await,
            CardStep::Look(_) => Ok(()),
        };
        let sent = self.ambient.clock.now();
        let presence = match done {
            Ok(()) => self.ask(member).await,
            Err(error) => Err(error),
        };
        self.state().busy[member] = false;
        match presence {
            Ok(presence) => self.present(member, presence, sent),
            Err(error) => {
                tracing::debug!(member = %handle.id(), %error, "card not kept");
                self.state().trust.missed(member);
                // Other members may be evidence enough.
                self.keep_cards();
            }
        }
    }

    async fn ask(&self, member: usize) -> Result<Presence, Error> {
        limited(&self.ambient, self.members[member].presence()).await
    }

    fn note(&self, member: usize, learned: Learned) {
        if let Some(span) = learned.stood_still {
            let member = self.members[member].id();
            tracing::warn!(%member, ?span, "this machine was suspended, and its clock did not notice");
            self.ambient.clock.stood_still(span);
        }
    }

    fn since(&self, sent: BootInstant) -> Between {
        Between {
            sent,
            received: self.ambient.clock.now(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under the mutex leaves it whole, also where a panic comes between.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Shows of all that were heard whether their answers count: what one says may be of another.
    fn show_all(&mut self, now: BootInstant) {
        let heard = self.strangers.iter().enumerate();
        for (member, _) in heard.filter(|(_, is_stranger)| !**is_stranger) {
            let counts = self.trust.counts(member, now, None).is_ok();
            self.standings.judged(member, counts);
        }
    }

    /// Logs when the reason changes for which a member does not count. That this client has not asked it
    /// yet is no news.
    fn log(&mut self, member: usize, distrust: Option<&Distrust>, ambient: &Ambient) {
        if let Some(Distrust::Unknown) = distrust {
            return;
        }
        let reason = distrust.map(ToString::to_string);
        if self.reasons[member] == reason {
            return;
        }
        let id = self.trust.id(member);
        match (&reason, distrust) {
            (Some(reason), Some(distrust)) => {
                let again = distrust.until().map(|it| it.since(ambient.clock.now()));
                let again = again.map(|span| format!("{span:.0?}"));
                tracing::warn!(member = %id, reason, again, "member has no vote");
            }
            // An empty reason was never told.
            _ if self.reasons[member].as_deref() == Some("") => {}
            _ => tracing::info!(member = %id, "member has a vote again"),
        }
        self.reasons[member] = reason;
    }

    /// Where nobody is left out, it is at least said.
    fn log_restart(&mut self, member: usize) {
        let id = self.trust.id(member);
        if self.reasons[member].replace(String::new()).is_some() {
            tracing::warn!(member = %id, "restarted, and may have forgotten leases");
        }
    }
}
