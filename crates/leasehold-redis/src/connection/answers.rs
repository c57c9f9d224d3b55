use std::ops::Deref;

use super::answer::Answer;

/// The answers to what was asked together, in that order. As many as most requests have take no memory of
/// their own.
pub(crate) enum Answers {
    /// The first so many of them.
    Few([Answer; FEW], usize),
    Many(Vec<Answer>),
}

const FEW: usize = 2;

impl Answers {
    /// Room for so many.
    pub(super) fn with_capacity(expected: usize) -> Self {
        if expected > FEW {
            Self::Many(Vec::with_capacity(expected))
        } else {
            Self::default()
        }
    }

    pub(super) fn push(&mut self, answer: Answer) {
        match self {
            Self::Few(few, count) if *count < FEW => {
                few[*count] = answer;
                *count += 1;
            }
            Self::Few(few, _) => {
                let mut many: Vec<Answer> = few.each_mut().map(std::mem::take).into();
                many.push(answer);
                *self = Self::Many(many);
            }
            Self::Many(many) => many.push(answer),
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Answer> {
        match self {
            Self::Few(few, count) => few.into_iter().take(count).collect(),
            Self::Many(many) => many,
        }
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self::Few([const { Answer::Nil }; FEW], 0)
    }
}

impl Deref for Answers {
    type Target = [Answer];

    fn deref(&self) -> &[Answer] {
        match self {
            Self::Few(few, count) => &few[..*count],
            Self::Many(many) => many,
        }
    }
}

impl From<Vec<Answer>> for Answers {
    fn from(answers: Vec<Answer>) -> Self {
        Self::Many(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_answers_stays_in_order() {
        for (expected, count) in [(0, 0), (1, 1), (2, 2), (2, 3), (0, 9), (9, 9), (9, 1)] {
            let mut answers = Answers::with_capacity(expected);
            let all: Vec<Answer> = (0..count).map(Answer::Integer).collect();
            for answer in &all {
                answers.push(answer.clone());
            }
            assert_eq!(&*answers, all, "{expected} expected");
            assert_eq!(answers.into_vec(), all);
        }
    }
}
