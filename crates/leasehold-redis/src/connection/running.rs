//! Having a server run scripts that it may not know yet.

use leasehold::Error;

use super::answer::Answer;
use super::command::{Command, Script};
use super::joining::Joining;
use super::link::Link;
use super::outbox::Replies;
use super::writing::Writing;

impl Link {
    /// Sends `commands`, among them calls of `script`, in one write; the answers are in their order.
    /// Where the server does not know the script, it is loaded and everything sent again.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    pub(crate) async fn run(
        &self,
        script: &Script,
        commands: Vec<Command>,
    ) -> Result<Vec<Answer>, Error> {
        let replies = self.run_written(script, |out| out.add_all(&commands), false);
        Ok(replies.await?.answers.into_vec())
    }

    /// As [`run`](Self::run), with what the server shows of itself after it.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    pub(crate) async fn run_shown(
        &self,
        script: &Script,
        commands: Vec<Command>,
    ) -> Result<Replies, Error> {
        self.run_written(script, |out| out.add_all(&commands), true)
            .await
    }

    /// As [`run`](Self::run), for what `write` writes, and as
    /// [`exchange_written`](Self::exchange_written) does.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    pub(crate) async fn run_written(
        &self,
        script: &Script,
        write: impl Fn(&mut Writing<'_>) + Send + Sync,
        is_shown: bool,
    ) -> Result<Replies, Error> {
        let replies = self.exchange_written(&write, is_shown).await?;
        if !replies.answers.iter().any(is_unknown_script) {
            return Ok(replies);
        }
        // In a box of its own: it happens once in a server's life, and each request would have room for it.
        Box::pin(self.load_and_run(&[script], write, is_shown)).await
    }

    /// As [`run_written`](Self::run_written), or in one command with the request in front of it: a call of the
    /// first of `scripts` by itself, and of the second then.
    ///
    /// # Errors
    ///
    /// As [`exchange`](Self::exchange).
    pub(crate) async fn run_joining(
        &self,
        scripts: [&Script; 2],
        write: impl Fn(&mut Writing<'_>) + Send + Sync,
        joining: &Joining<'_>,
    ) -> Result<Replies, Error> {
        let replies = self.line.ask_joining(&write, joining).await;
        let replies = replies.map_err(Error::with_unknown_effect)?;
        if !replies.answers.iter().any(is_unknown_script) {
            return Ok(replies);
        }
        Box::pin(self.load_and_run(&scripts, write, false)).await
    }

    async fn load_and_run(
        &self,
        scripts: &[&Script],
        write: impl Fn(&mut Writing<'_>) + Send + Sync,
        is_shown: bool,
    ) -> Result<Replies, Error> {
        let loading = |out: &mut Writing<'_>| {
            scripts.iter().for_each(|script| out.add(&script.load()));
            write(out);
        };
        let Replies { answers, shown } = self.exchange_written(loading, is_shown).await?;
        let mut answers = answers.into_vec();
        for _ in scripts {
            answers = loaded(answers);
        }
        let answers = answers.into();
        Ok(Replies { answers, shown })
    }
}

fn is_unknown_script(answer: &Answer) -> bool {
    matches!(answer, Answer::Refused(refusal) if refusal.is_unknown_script())
}

/// The answers to what was sent behind the loading of a script.
fn loaded(mut answers: Vec<Answer>) -> Vec<Answer> {
    let loaded = answers.remove(0);
    if matches!(loaded, Answer::Refused(_)) {
        // A server that may not be told the script refuses the loading with the reason.
        let unloaded = answers
            .iter_mut()
            .filter(|answer| is_unknown_script(answer));
        unloaded.for_each(|answer| answer.clone_from(&loaded));
    }
    answers
}
