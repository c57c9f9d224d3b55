//! What the fuzz targets call, one function for each; `fuzz/README.md` says how to run them.

use leasehold::clock::WallTime;
use leasehold::{ClientId, Mode, Permits};

use crate::connection::fuzzing::{replies, scan};
use crate::connection::{Answer, Info, Rights, read_time};
use crate::url::RedisUrl;
use crate::wire::{LockValue, hash_tag, read_entry};
use crate::{attempt, breaking, card, hint, look, permit, presence, record, sample};

/// The bytes of a connection.
///
/// # Panics
///
/// If a reply that comes in pieces is not read as a whole one is.
pub fn reply(bytes: &[u8]) {
    replies(bytes);
    scan(bytes);
}

/// Replies, read as the answers to each request of this crate.
pub fn answer(bytes: &[u8]) {
    let answers = replies(bytes);
    let _ = presence::read(&answers, "ann");
    let _ = presence::info(&answers, "ann");
    if let Ok(info) = Info::read(&answers, "ann") {
        let _ = (info.unfit(), info.field("role"));
    }
    answers.iter().for_each(understand);
}

fn understand(answer: &Answer) {
    let (Ok(client), Ok(permits)) = ("0123456789abcdef".parse(), Permits::new(3)) else {
        return;
    };
    let client: ClientId = client;
    let _ = (
        read_time(answer),
        answer.as_scored(),
        attempt::read_fence(answer),
    );
    let _ = (
        attempt::duration(answer),
        permit::read_free(Some(answer), permits),
    );
    let _ = (card::read(answer, "ann"), look::read_client(client, answer));
    let _ = (
        record::read_reading(answer),
        answer
            .as_list()
            .and_then(|found| breaking::read(&breaking::by_name(found))),
    );
    let now = WallTime::from_micros(1_763_637_400_000_000);
    let _ = look::together(answer, Mode::Shared, now);
    match answer {
        Answer::Text(bytes) => {
            let _ = (
                LockValue::read(bytes),
                hint::read("app:", bytes),
                hint::read("", bytes),
            );
            let text = String::from_utf8_lossy(bytes);
            let _ = (
                read_entry(&text),
                sample::read_mark(&text),
                &text[hash_tag(&text)],
            );
        }
        Answer::Refused(refusal) => {
            let _ = refusal.to_error("ann", Rights("+get"));
        }
        Answer::List(items) => items.iter().for_each(understand),
        _ => {}
    }
}

/// Store URLs.
pub fn url(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(url) = RedisUrl::parse(&text) {
        let _ = (
            url.described(),
            url.room(),
            url.address.same_server(&url.address),
        );
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::feed_seeds;

    #[test]
    fn replies_of_any_bytes_are_read_safely() {
        feed_seeds("reply", 2_000, super::reply);
    }

    #[test]
    fn answers_of_any_bytes_are_read_safely() {
        feed_seeds("answer", 2_000, super::answer);
    }

    #[test]
    fn urls_of_any_bytes_are_read_safely() {
        feed_seeds("url", 2_000, super::url);
    }
}
