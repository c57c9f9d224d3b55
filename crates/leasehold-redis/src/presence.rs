//! How the server is, by its own word.

use std::time::Duration;

use leasehold::clock::BootInstant;
use leasehold::{Error, ErrorKind, Presence, RunId};

use crate::attempt::garbled;
use crate::card::{self, MARK};
use crate::connection::{Answer, Command, Info, Link, Rights, Unanswered, read_time};
use crate::scripts::RIGHTS;
use crate::wire::CARD;

/// Asked in one write, also by every connection when it opens.
pub(crate) fn questions() -> Vec<Command> {
    let mut questions = Info::questions();
    // One pattern, since servers before Redis 7.0 take one name at a time.
    questions.push(Command::new("CONFIG").arg("GET").arg("*append*"));
    questions.push(Command::new("HGETALL").arg(CARD));
    // Only to see whether the mark may be read, as with every sample.
    questions.push(Command::new("HGET").arg(CARD).arg(MARK));
    questions.push(Command::new("TIME"));
    questions
}

/// How the server is, asked no earlier than at `asked`: what the connection asked when it opened
/// answers all who came before.
pub(crate) async fn presence(link: &Link, asked: BootInstant) -> Result<Presence, Error> {
    match link.opening(asked) {
        Some(presence) => presence,
        None => {
            // Behind a relay that acknowledges and delivers nothing, no timeout of TCP ends it.
            let unanswered = Unanswered::on(link);
            let answers = link.exchange(&questions()).await?;
            unanswered.answered();
            let presence = read(&answers, link.user())?;
            check_run(link, &presence.run)?;
            Ok(presence)
        }
    }
}

/// A connection ends with the run of its server, so that every answer on it is of that run. Behind a
/// proxy that reconnects by itself it does not: then it is given up, and the next one learns the run.
fn check_run(link: &Link, run: &RunId) -> Result<(), Error> {
    if run == link.run_id() {
        return Ok(());
    }
    link.abort();
    let text = format!(
        "the server restarted (run {run}, before {}) and the connection to it stayed open: a proxy \
         in between reconnects by itself; use the address of the server, or a proxy that closes \
         the client's connection when the server closes its own",
        link.run_id()
    );
    Err(Error::new(ErrorKind::Unreachable, text))
}

/// Reads the answers to [`questions`], as far as they are INFO.
pub(crate) fn info(answers: &[Answer], user: &str) -> Result<Info, Error> {
    match answers {
        [infos @ .., _config, _card, _mark, _time] => Info::read(infos, user),
        _ => Err(garbled("INFO")),
    }
}

/// Reads the answers to [`questions`].
pub(crate) fn read(answers: &[Answer], user: &str) -> Result<Presence, Error> {
    let info = info(answers, user)?;
    let [.., config, card, mark, time] = answers else {
        return Err(garbled("INFO"));
    };
    if let Answer::Refused(refusal) = time {
        return Err(refusal.to_error(user, Rights("+time")));
    }
    let clock = read_time(time).ok_or_else(|| garbled("TIME"))?;
    let uptime = info.demand("uptime_in_seconds")?;
    let uptime = uptime.parse().map_err(|_| garbled("INFO"))?;
    let run = RunId::new(info.demand("run_id")?);
    let mut presence = Presence::new(run, clock, Duration::from_secs(uptime));
    presence.was_replica = !info.field("master_replid2").is_some_and(is_unset);
    presence.durable = is_durable(&info, config) && !presence.was_replica;
    presence.unfit = info.unfit();
    match unreadable(&[card, mark], user) {
        None => presence.card = card::read(card, user)?,
        Some(reason) => presence.unfit = presence.unfit.or(Some(reason)),
    }
    Ok(presence)
}

/// Why the user may not read the card. Such a user can take locks, but not in a set.
fn unreadable(answers: &[&Answer], user: &str) -> Option<String> {
    let refusal = answers.iter().find_map(|answer| match answer {
        Answer::Refused(refusal) if refusal.is_missing_right() => Some(refusal),
        _ => None,
    })?;
    let why = refusal.to_error(user, RIGHTS);
    Some(format!("its card cannot be read: {}", why.reason()))
}

/// Whether all that the server acknowledges is on its disk, and no replica that lags behind can take
/// its place. What is not known counts against it.
fn is_durable(info: &Info, config: &Answer) -> bool {
    let says = |name: &str, value: &str| {
        let pairs = config.as_list().unwrap_or_default();
        let mut pairs = pairs.chunks_exact(2);
        let pair = pairs.find(|pair| pair[0].as_text() == Some(name));
        pair.is_some_and(|pair| pair[1].as_text() == Some(value))
    };
    says("appendonly", "yes")
        && says("appendfsync", "always")
        && says("no-appendfsync-on-rewrite", "no")
        && info.field("aof_enabled") == Some("1")
        && info.field("aof_last_write_status") == Some("ok")
        && info.field("connected_slaves") == Some("0")
}

/// Whether a replication id is that of no server. A primary has a second one if it was a replica.
fn is_unset(id: &str) -> bool {
    id.bytes().all(|digit| digit == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "redis_version:7.0.15\r\nrun_id:abc\r\nuptime_in_seconds:7\r\n\
        role:master\r\ncluster_enabled:0\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\
        aof_enabled:1\r\naof_last_write_status:ok\r\n\
        connected_slaves:0\r\nmaster_replid2:0000000000000000000000000000000000000000\r\n";

    const DURABLE: [&str; 6] = [
        "appendonly",
        "yes",
        "appendfsync",
        "always",
        "no-appendfsync-on-rewrite",
        "no",
    ];

    fn texts(texts: &[&str]) -> Answer {
        let text = |text: &&str| Answer::Text(text.as_bytes().to_vec());
        Answer::List(texts.iter().map(text).collect())
    }

    fn presence(info: &str, config: Answer) -> Result<Presence, Error> {
        let info = Answer::Text(info.as_bytes().to_vec());
        let time = texts(&["1763637400", "7"]);
        read(&[info, config, texts(&[]), Answer::Nil, time], "ann")
    }

    #[test]
    fn durable_is_what_certainly_is() {
        let with = |info: &str, config| presence(info, config).unwrap().durable;
        assert!(with(INFO, texts(&DURABLE)));
        assert!(!with(
            &INFO.replace("status:ok", "status:err"),
            texts(&DURABLE)
        ));
        assert!(!with(&INFO.replace("aof_enabled:1", ""), texts(&DURABLE)));
        for (is, other) in [
            ("slaves:0", "slaves:1"),
            ("slaves:0", ""),
            ("id2:0", "id2:1"),
        ] {
            assert!(!with(&INFO.replace(is, other), texts(&DURABLE)), "{other}");
        }
        for wrong in [1, 3, 5] {
            let mut config = DURABLE;
            config[wrong] = "everysec";
            assert!(!with(INFO, texts(&config)));
        }
        assert!(!with(INFO, texts(&DURABLE[..4])));
        let refused = crate::connection::Refusal::new("NOPERM", "no");
        assert!(!with(INFO, Answer::Refused(refused)));
    }

    #[test]
    fn what_is_missing_from_info_is_no_presence() {
        for name in ["run_id", "uptime_in_seconds"] {
            let error = presence(&INFO.replace(name, "x"), texts(&[])).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Garbled);
        }
    }
}
