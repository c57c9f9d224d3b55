/// Rust text with every comment, string and character literal replaced by blanks, so that a rule
/// sees code alone. Lines and columns stay where they were.
///
/// This is a minimal lexer of Rust: it knows nested comments, raw strings, byte strings, and the
/// difference between a lifetime and a character.
pub(crate) fn blank(text: &str) -> String {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
        out: String::with_capacity(text.len()),
    };
    while lexer.at < lexer.chars.len() {
        lexer.token();
    }
    lexer.out
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    out: String,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn keep(&mut self) {
        self.out.push(self.peek(0));
        self.at += 1;
    }

    fn erase(&mut self, count: usize) {
        for _ in 0..count.min(self.chars.len() - self.at) {
            let blank = if self.peek(0) == '\n' { '\n' } else { ' ' };
            self.out.push(blank);
            self.at += 1;
        }
    }

    fn token(&mut self) {
        match self.peek(0) {
            '/' if self.peek(1) == '/' => {
                while self.at < self.chars.len() && self.peek(0) != '\n' {
                    self.erase(1);
                }
            }
            '/' if self.peek(1) == '*' => self.block_comment(),
            '"' => self.string(),
            '\'' => self.character_or_lifetime(),
            c if c.is_alphanumeric() || c == '_' => self.word(),
            _ => self.keep(),
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.erase(1);
                    continue;
                }
            }
            self.erase(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.erase(1);
        while self.at < self.chars.len() {
            match self.peek(0) {
                '\\' => self.erase(2),
                '"' => return self.erase(1),
                _ => self.erase(1),
            }
        }
    }

    fn character_or_lifetime(&mut self) {
        if self.peek(1) == '\\' {
            self.erase(3);
            while self.at < self.chars.len() && self.peek(0) != '\'' {
                self.erase(1);
            }
            self.erase(1);
        } else if self.peek(2) == '\'' {
            self.erase(3);
        } else {
            self.keep();
        }
    }

    /// An identifier, a number, or the prefix of a literal.
    fn word(&mut self) {
        let mut end = self.at;
        while self
            .chars
            .get(end)
            .is_some_and(|c| c.is_alphanumeric() || *c == '_')
        {
            end += 1;
        }
        let word: String = self.chars[self.at..end].iter().collect();
        let hashes = self.chars[end..].iter().take_while(|c| **c == '#').count();
        let opens = self.chars.get(end + hashes) == Some(&'"');
        if ["r", "br", "cr"].contains(&word.as_str()) && opens {
            self.erase(word.len() + hashes + 1);
            self.raw_string(hashes);
            return;
        }
        while self.at < end {
            self.keep();
        }
    }

    fn raw_string(&mut self, hashes: usize) {
        while self.at < self.chars.len() {
            let closes = (1..=hashes).all(|ahead| self.peek(ahead) == '#');
            if self.peek(0) == '"' && closes {
                return self.erase(1 + hashes);
            }
            self.erase(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_vanish_and_lines_stay() {
        let text = "a(); // b()\n/* c /* d */ e */ f(\"g \\\" h\", 'i', b\"j\");\n";
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.lines().count(), 2);
        let left: String = code.split_whitespace().collect();
        assert_eq!(left, "a();f(,,b);");
    }

    #[test]
    fn raw_strings_end_at_their_own_mark() {
        let code = blank("x(r#\"say \"no\" // y\"#); z");
        assert_eq!(code.split_whitespace().collect::<String>(), "x();z");
        assert_eq!(blank("for_r\"s\""), "for_r   ");
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_not() {
        assert_eq!(blank("fn f<'a>(x: &'a str)"), "fn f<'a>(x: &'a str)");
        assert_eq!(blank(r"['\'', '{', '\u{7f}']"), "[    ,    ,         ]");
    }
}
