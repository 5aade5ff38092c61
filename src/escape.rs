//! Text from a claim or a server, made safe for a terminal.
//!
//! Claims are written by strangers: a note may hold escape sequences, marks that reorder what is displayed, or
//! characters that do not show. Such characters are written out; everything else stays as it is. In JSON they are
//! escaped by JSON's own means (see [`crate::output::json`]).

use std::{borrow::Cow, fmt::Write as _};

/// `text` on one line, with nothing in it that acts on a terminal or hides in it.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(acts) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push(' '),
            character if acts(character) => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
            }
            character => safe.push(character),
        }
    }
    Cow::Owned(safe)
}

/// Control characters (C0, DEL, C1), bidirectional marks, line separators and what takes no room.
pub fn acts(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_written_out() {
        for (hostile, shown) in [
            ("\x1b]52;c;ZXZpbA==\x07", r"\u{1b}]52;c;ZXZpbA==\u{7}"),
            ("safe\rfake", r"safe\rfake"),
            ("two\nlines", r"two\nlines"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\u{202e}b\u{2066}c", r"a\u{202e}b\u{2066}c"),
            ("zero\u{200b}width\u{feff}", r"zero\u{200b}width\u{feff}"),
            ("tab\there", "tab here"),
        ] {
            assert_eq!(line(hostile), shown);
        }
    }

    #[test]
    fn plain_text_of_any_language_is_left_alone() {
        for text in ["the login loop", "Zoë Ünïcode", "日本語", "עברית", "🦀", ""] {
            assert!(matches!(line(text), Cow::Borrowed(same) if same == text));
        }
    }
}
