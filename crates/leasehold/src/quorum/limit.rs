use std::time::Duration;

use crate::ambient::Ambient;
use crate::clock;
use crate::error::{Error, ErrorKind};

/// An answer to `request`, or an error once it took too long.
pub(crate) async fn limited<T>(
    ambient: &Ambient,
    request: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let clock = &*ambient.clock;
    let answer = clock::within(clock, clock.now() + LIMIT, request).await;
    answer.unwrap_or_else(|| {
        let text = format!("no answer within {LIMIT:?}");
        Err(Error::new(ErrorKind::Unreachable, text).with_unknown_effect())
    })
}

/// How long asking or writing in the background may take.
const LIMIT: Duration = Duration::from_secs(1);
