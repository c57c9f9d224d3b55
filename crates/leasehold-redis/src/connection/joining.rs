use super::answer::Answer;
use super::outbox::Request;
use super::writing::Writing;

/// How a request goes out in one command with the one in front of it, if that is the right one and has not
/// gone out yet.
pub(crate) struct Joining<'a> {
    /// How the one in front must begin: its last word may be any.
    pub(crate) front: Words<'a>,
    /// The command for both, but for that word, which is its last one too. Its answer is a list: that
    /// to the one in front, and that to this one.
    pub(crate) both: Words<'a>,
}

/// Writes all words of a command but the last one.
pub(crate) type Words<'a> = &'a (dyn Fn(&mut Writing<'_>) + Send + Sync);

impl Joining<'_> {
    /// The last word of `command`, as it is written, if it is one that this may be joined to.
    pub(super) fn last_word<'c>(&self, command: &'c [u8]) -> Option<&'c [u8]> {
        let mut front = Vec::new();
        let mut writing = Writing::behind(&mut front);
        (self.front)(&mut writing);
        writing.lacks_a_word();
        writing.keep();
        command.strip_prefix(front.as_slice())
    }

    /// Writes the command for both.
    pub(super) fn write(&self, last_word: &[u8], bytes: &mut Vec<u8>) {
        let mut writing = Writing::behind(bytes);
        (self.both)(&mut writing);
        writing.written(last_word);
        writing.keep();
    }
}

/// Two requests that went out in one command.
pub(super) struct Joined(pub(super) [Request; 2]);

impl Joined {
    pub(super) fn is_answered(&self) -> bool {
        self.0.iter().all(Request::is_answered)
    }

    /// What is no list of two, as an error, is the answer to each.
    pub(super) fn take(&mut self, answer: Answer) {
        let parts = match answer {
            Answer::List(parts) => parts.try_into().map_err(Answer::List),
            answer => Err(answer),
        };
        let answers = parts.unwrap_or_else(|answer| [answer.clone(), answer]);
        for (request, answer) in self.0.iter_mut().zip(answers) {
            request.answers.push(answer);
        }
    }
}
