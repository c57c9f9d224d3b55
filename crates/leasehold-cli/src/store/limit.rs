use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::store::rough_span;
use leasehold::{Error, ErrorKind};

/// How long one server may take to answer a question about its state.
pub(crate) const MEMBER_LIMIT: Duration = Duration::from_secs(2);

/// Asks all servers at once, for at most `limit`. Once a majority has answered, the others get as long again, or
/// [`REST_MIN`] in all.
pub(crate) async fn ask_all<T>(
    limit: Duration,
    questions: impl IntoIterator<Item = impl Future<Output = Result<T, Error>>>,
) -> Vec<Result<T, Error>> {
    let number = |(index, question)| async move { (index, question.await) };
    let questions = questions.into_iter().enumerate();
    let mut asked: FuturesUnordered<_> = questions.map(number).collect();
    let mut answers: Vec<Option<Result<T, Error>>> = (0..asked.len()).map(|_| None).collect();
    let (began, mut given, mut limit) = (SystemClock.now(), 0, limit);
    while let Some(Some((index, answer))) = within(&SystemClock, began + limit, asked.next()).await
    {
        given += usize::from(answer.is_ok());
        answers[index] = Some(answer);
        if given == answers.len() / 2 + 1 {
            let took = SystemClock.now().since(began);
            limit = limit.min((2 * took).max(REST_MIN));
        }
    }
    let answers = answers.into_iter();
    answers
        .map(|answer| answer.unwrap_or_else(|| Err(silent(limit))))
        .collect()
}

/// How long each server has at least.
const REST_MIN: Duration = Duration::from_secs(1);

fn silent(limit: Duration) -> Error {
    let text = format!("no answer within {}", rough_span(limit));
    Error::new(ErrorKind::Unreachable, text)
}
