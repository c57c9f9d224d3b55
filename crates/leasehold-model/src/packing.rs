//! A state in a few words. States that differ only by names, but know the same, are one state.

use crate::state::{ATTEMPTS, Acquire, Attempt, Member, MemberTrust, ModelState, Phase, Talk};

impl<const N: usize> ModelState<N> {
    /// All but the members in one word.
    fn word(&self) -> u128 {
        let mut bits = Bits::default();
        for attempt in self.attempts {
            attempt.put(&mut bits);
        }
        bits.put(self.wall, 4);
        bits.put(self.since_start, 2);
        bits.put(self.greatest, 7);
        for left in [self.left.restarts, self.left.jumps, self.left.repeats] {
            bits.put(left, 2);
        }
        bits.word
    }
}

impl<const N: usize> ModelState<N> {
    /// Returns the same state with its members in order, and its fingerprint. If attempts are alike,
    /// they are in order too. So states that differ only by names, but know the same, are one.
    #[must_use]
    pub fn canonical(mut self, attempts_alike: bool) -> (Self, u64) {
        if attempts_alike {
            self.sort_attempts();
        }
        let words = self.sort_members();
        let mut print = Fingerprint(0x243f_6a88_85a3_08d3);
        print.mix(self.word());
        for word in words {
            print.mix(word);
        }
        (self, print.0)
    }

    fn sort_members(&mut self) -> [u128; N] {
        let mut words = self.members.map(|member| member.word());
        for end in 1..N {
            let mut at = end;
            while at > 0 && words[at - 1] > words[at] {
                words.swap(at - 1, at);
                self.members.swap(at - 1, at);
                at -= 1;
            }
        }
        words
    }

    /// Puts the attempts into an order that depends on what they know, not on when they began.
    fn sort_attempts(&mut self) {
        let mut keys = [(u32::MAX, 0); ATTEMPTS];
        for (a, key) in keys.iter_mut().enumerate() {
            let unsent = self.attempts[a].phase == Phase::Unsent;
            if !unsent {
                *key = (self.attempts[a].word(), self.talk_sum(a));
            }
        }
        for end in 1..ATTEMPTS {
            let mut at = end;
            while at > 0 && keys[at - 1] > keys[at] {
                keys.swap(at - 1, at);
                self.swap_attempts(at - 1, at);
                at -= 1;
            }
        }
    }

    /// A number that stays the same when members change places.
    fn talk_sum(&self, a: usize) -> u64 {
        let part = |member: &Member| {
            let holds = member
                .lease
                .is_some_and(|lease| usize::from(lease.attempt) == a);
            let word = member.talks[a].word() << 8 | u64::from(member.counter) << 1;
            (word | u64::from(holds)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
        };
        self.members.iter().map(part).sum()
    }

    fn swap_attempts(&mut self, one: usize, other: usize) {
        self.attempts.swap(one, other);
        for member in &mut self.members {
            member.talks.swap(one, other);
            if let Some(lease) = &mut member.lease {
                lease.attempt = match usize::from(lease.attempt) {
                    a if a == one => other as u8,
                    a if a == other => one as u8,
                    _ => lease.attempt,
                };
            }
        }
    }
}

impl Talk {
    /// All of it in one word.
    pub(crate) fn word(self) -> u64 {
        let mut bits = Bits::default();
        self.put(&mut bits);
        bits.word as u64
    }

    fn put(self, bits: &mut Bits) {
        bits.put(u8::from(self.listed), 1);
        match self.acquire {
            Acquire::Gone => bits.put(0, 10),
            Acquire::Sent => bits.put(1, 10),
            Acquire::Taken => bits.put(2, 10),
            Acquire::Busy => bits.put(3, 10),
            Acquire::GrantedOut => bits.put(4, 10),
            Acquire::Granted(answer) => {
                bits.put(5, 3);
                bits.put(answer, 7);
            }
        }
        bits.put(u8::from(self.barred), 1);
        bits.put(self.confirmation as u8, 2);
        for renewal in self.renewals {
            bits.put(renewal as u8, 3);
        }
        bits.put(self.repair as u8, 2);
    }
}

impl Member {
    /// All of it in one word.
    #[must_use]
    pub fn word(&self) -> u128 {
        let mut bits = Bits::default();
        bits.put(self.counter, 7);
        match self.lease {
            None => bits.put(0, 5),
            Some(lease) => {
                bits.put(1 + lease.attempt, 3);
                bits.put(lease.age, 2);
            }
        }
        match self.trust {
            MemberTrust::Sound => bits.put(0, 4),
            MemberTrust::Back => bits.put(1, 4),
            MemberTrust::Out(ticks) => bits.put(2 + ticks, 4),
        }
        for talk in self.talks {
            talk.put(&mut bits);
        }
        bits.word
    }
}

impl Attempt {
    /// All of it in one word.
    pub(crate) fn word(self) -> u32 {
        let mut bits = Bits::default();
        self.put(&mut bits);
        bits.word as u32
    }

    fn put(self, bits: &mut Bits) {
        bits.put(self.phase as u8, 3);
        bits.put(self.age, 2);
        bits.put(self.proposal, 7);
        bits.put(self.fence, 7);
        bits.put(self.rounds, 2);
        bits.put(self.round_age.map_or(0, |age| 1 + age), 3);
    }
}

/// Fields put side by side.
#[derive(Default)]
struct Bits {
    word: u128,
}

impl Bits {
    fn put(&mut self, value: u8, width: u32) {
        debug_assert!(u32::from(value) < 1 << width, "{value} in {width} bits");
        self.word = self.word << width | u128::from(value);
    }
}

/// A hash of 64 bits: in ten million states two share one with a chance of 1 in 300,000.
struct Fingerprint(u64);

impl Fingerprint {
    fn mix(&mut self, word: u128) {
        for half in [word as u64, (word >> 64) as u64] {
            let mut hash = (self.0 ^ half).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
            self.0 = hash ^ hash >> 29;
        }
    }
}
