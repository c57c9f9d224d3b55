use std::time::Duration;

use leasehold::clock::{Clock as _, SystemClock, within};
use leasehold::{Error, ErrorKind};

/// How long one server may take to answer one question.
pub(crate) const MEMBER_LIMIT: Duration = Duration::from_secs(2);

/// The answer to `question`, or an error after `limit`.
pub(crate) async fn limited<T>(
    limit: Duration,
    question: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let end = SystemClock.now() + limit;
    let answer = within(&SystemClock, end, question).await;
    answer.unwrap_or_else(|| {
        let text = format!("no answer within {limit:?}");
        Err(Error::new(ErrorKind::Unreachable, text))
    })
}
