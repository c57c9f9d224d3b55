use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use crate::entropy::Entropy;
use crate::instants::WallTime;

/// The random identity of one client: one process's connection to its locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(u64);

impl ClientId {
    /// Draws a new identity.
    pub fn random(entropy: &dyn Entropy) -> Self {
        Self(entropy.next_u64())
    }
}

impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientId({self})")
    }
}

impl FromStr for ClientId {
    type Err = NotAnOwner;

    fn from_str(text: &str) -> Result<Self, NotAnOwner> {
        if text.len() != 16 || !is_lower_hex(text) {
            return Err(NotAnOwner);
        }
        u64::from_str_radix(text, 16)
            .map(Self)
            .map_err(|_| NotAnOwner)
    }
}

/// The random identity of one round of a wait for a lock, and of the lease that it is granted.
///
/// Once a release of an owner may have been sent, the owner never asks again, and the wait continues with a new
/// one. So a release that arrives late cannot free a later lease. Written `<client id, 16 hex digits>.<nonce, 32 hex digits>`:
/// printable ASCII. The nonce is 64 random bits, the instant of the draw in 56 bits, and 8 more random
/// bits. The instant lets every store show since when a lock is held, without another key or request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    client: ClientId,
    /// The random half of the nonce.
    random: u64,
    /// The half with the instant.
    dated: u64,
}

/// The random half is enough to tell owners apart.
impl Hash for Owner {
    #[inline]
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.random);
    }
}

impl Owner {
    /// Draws an owner for `client` at the instant `at`, by its wall clock in microseconds.
    pub fn at(client: ClientId, at: WallTime, entropy: &dyn Entropy) -> Self {
        let mut owner = Self::random(client, entropy);
        owner.dated = (at.as_micros() << RANDOM_BITS) | (owner.dated & RANDOM_MASK);
        owner
    }

    /// Returns the instant at which the owner was drawn, by the wall clock of its client.
    pub fn since(self) -> WallTime {
        WallTime::from_micros(self.dated >> RANDOM_BITS)
    }

    /// Draws an identity that contains no instant, for a waiter, which never holds a lock.
    pub fn random(client: ClientId, entropy: &dyn Entropy) -> Self {
        let (random, dated) = (entropy.next_u64(), entropy.next_u64());
        Self {
            client,
            random,
            dated,
        }
    }

    /// Returns the client that drew the owner.
    #[inline]
    pub fn client(self) -> ClientId {
        self.client
    }

    /// Returns its two numbers: the client's id and the nonce.
    pub fn to_bits(self) -> (u64, u128) {
        let nonce = (u128::from(self.random) << 64) | u128::from(self.dated);
        (self.client.0, nonce)
    }

    /// Returns the owner with these two numbers.
    pub fn from_bits((client, nonce): (u64, u128)) -> Self {
        Self {
            client: ClientId(client),
            random: (nonce >> 64) as u64,
            dated: nonce as u64,
        }
    }
}

impl Owner {
    /// Returns the [text form](fmt::Display), for messages. Each message carries an owner, and generic
    /// formatting takes several times as long.
    #[inline]
    pub fn to_ascii(self) -> [u8; 49] {
        let mut text = [b'.'; CLIENT_DIGITS + 1 + NONCE_DIGITS];
        text[..CLIENT_DIGITS].copy_from_slice(&hex(self.client.0));
        let (high, low) = text[CLIENT_DIGITS + 1..].split_at_mut(NONCE_DIGITS / 2);
        high.copy_from_slice(&hex(self.random));
        low.copy_from_slice(&hex(self.dated));
        text
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.to_ascii()).map_err(|_| fmt::Error)?)
    }
}

/// The number of random bits after the instant.
const RANDOM_BITS: u32 = 8;
const RANDOM_MASK: u64 = (1 << RANDOM_BITS) - 1;

const CLIENT_DIGITS: usize = 16;
const NONCE_DIGITS: usize = 32;

/// Returns all digits of `bits`.
fn hex(bits: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    digits[..8].copy_from_slice(&hex_of_half((bits >> 32) as u32));
    digits[8..].copy_from_slice(&hex_of_half(bits as u32));
    digits
}

/// Returns all digits of `bits`, computed in parallel, each in a byte of one number.
fn hex_of_half(bits: u32) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let spread = u64::from(bits);
    let spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    let spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    let values = (spread | spread << 4) & (EACH * 0x0f);
    // Adding 6 to a value of 10 or more makes at least 16.
    let are_letters = ((values + EACH * 6) >> 4) & EACH;
    let to_letters = u64::from(b'a' - b'9' - 1);
    (values + EACH * u64::from(b'0') + are_letters * to_letters).to_be_bytes()
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({self})")
    }
}

impl FromStr for Owner {
    type Err = NotAnOwner;

    fn from_str(text: &str) -> Result<Self, NotAnOwner> {
        let (client, nonce) = text.split_once('.').ok_or(NotAnOwner)?;
        if nonce.len() != 32 || !is_lower_hex(nonce) {
            return Err(NotAnOwner);
        }
        let nonce = u128::from_str_radix(nonce, 16).map_err(|_| NotAnOwner)?;
        let client: ClientId = client.parse()?;
        Ok(Self::from_bits((client.0, nonce)))
    }
}

/// The text is not an owner that this library wrote: most likely another library's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnOwner;

impl fmt::Display for NotAnOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an owner written by leasehold")
    }
}

impl std::error::Error for NotAnOwner {}

fn is_lower_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::tests::RandomEntropy;

    #[test]
    fn an_owner_survives_its_text_form() {
        let owner = Owner::random(ClientId::random(&RandomEntropy), &RandomEntropy);
        let text = owner.to_string();
        assert_eq!(text.len(), 16 + 1 + 32);
        assert_eq!(text.parse(), Ok(owner));
        let nonce = u128::from(u64::MAX) << 32;
        let text = Owner::from_bits((0xa0, nonce)).to_string();
        assert_eq!(text, "00000000000000a0.00000000ffffffffffffffff00000000");
    }

    #[test]
    fn owner_names_the_instant_of_its_attempt() {
        let at = WallTime::from_micros(1_795_000_000_123_456);
        let client = ClientId::random(&RandomEntropy);
        let draw = || Owner::at(client, at, &RandomEntropy);
        assert_eq!((draw().since(), draw().client()), (at, client));
        assert_eq!(draw().to_string().parse::<Owner>().unwrap().since(), at);
        assert_ne!(draw(), draw());
    }

    #[test]
    fn all_digits_are_written_right_wherever_they_stand() {
        for digit in 0..16 {
            for place in 0..16 {
                let bits = digit << (4 * place);
                assert_eq!(hex(bits), *format!("{bits:016x}").as_bytes());
            }
        }
        for bits in [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, u64::MAX] {
            assert_eq!(hex(bits), *format!("{bits:016x}").as_bytes());
        }
    }

    #[test]
    fn other_libraries_tokens_are_not_owners() {
        for token in [
            "",
            ".",
            "a3f1",
            "0123456789abcdef.xyz",
            "+123456789abcdef.0",
        ] {
            assert_eq!(token.parse::<Owner>(), Err(NotAnOwner), "{token:?}");
        }
        let upper = format!("{:016X}.{:032X}", u64::MAX, u128::MAX);
        assert_eq!(upper.parse::<Owner>(), Err(NotAnOwner));
    }
}
