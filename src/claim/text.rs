//! Text made fit for a commit: one place decides what a line and a note may hold and how long they may be.
//!
//! Every function here gives the same answer when applied to its own answer; records rely on that to read back what they
//! wrote. Escaping for a terminal is not done here: what is stored is the text, harmless to git and to line-based readers.

/// The most bytes that a single-line value keeps. All trailers together stay well below [`MAX_TRAILERS`].
///
/// [`MAX_TRAILERS`]: super::reading::MAX_TRAILERS
pub(super) const MAX_LINE: usize = 2048;

/// The most bytes that a note keeps.
pub(super) const MAX_NOTE: usize = 16 * 1024;

/// `text` on one line: control characters and line ends become blanks, the ends are trimmed, overlong text is cut.
pub(super) fn line(text: &str) -> String {
    let blanked: String = text.chars().map(blank_if_control).collect();
    cut(blanked.trim(), MAX_LINE)
}

/// As [`line()`], `None` for text that holds nothing.
pub(super) fn optional_line(text: &str) -> Option<String> {
    Some(line(text)).filter(|line| !line.is_empty())
}

/// `text` as one word: blanks and control characters are dropped.
pub(super) fn word(text: &str) -> String {
    let solid: String = text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    cut(&solid, MAX_LINE)
}

/// `text` as a note: lines end in LF and not in blanks, control characters other than tabs are gone, no blank lines at the
/// ends, overlong text is cut. `None` for a note that says nothing.
pub(super) fn note(text: &str) -> Option<String> {
    let clean: String =
        text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect();
    let lines: Vec<&str> = clean.lines().map(str::trim_end).collect();
    let first = lines.iter().position(|line| !line.is_empty())?;
    let last = lines.iter().rposition(|line| !line.is_empty())?;
    Some(cut(&lines[first..=last].join("\n"), MAX_NOTE))
}

/// A part of a person's identity, cleaned like git does: no angle brackets, no punctuation or blanks at the ends.
pub(super) fn ident(text: &str) -> String {
    let plain: String =
        text.chars().filter(|c| !matches!(c, '<' | '>')).map(blank_if_control).collect();
    let crud =
        |c: char| c.is_whitespace() || matches!(c, '.' | ',' | ':' | ';' | '"' | '\\' | '\'');
    let plain = plain.trim_matches(crud);
    plain[..boundary(plain, MAX_IDENT)].trim_end_matches(crud).to_owned()
}

/// The most bytes that a name or an e-mail address keeps.
const MAX_IDENT: usize = 512;

/// The most bytes of what was typed or read that an error repeats.
const MAX_QUOTED: usize = 120;

/// `text`, shortened to at most `max` bytes with an ellipsis as its end if it is longer.
pub(super) fn cut(text: &str, max: usize) -> String {
    const ELLIPSIS: char = '…';
    if text.len() <= max {
        return text.to_owned();
    }
    let mut kept = text[..boundary(text, max - ELLIPSIS.len_utf8())].to_owned();
    kept.push(ELLIPSIS);
    kept
}

/// As much of `text` as an error repeats.
pub(super) fn quoted(text: &str) -> String {
    cut(text, MAX_QUOTED)
}

/// The last place at or before byte `max` where `text` can be cut.
fn boundary(text: &str, max: usize) -> usize {
    (0..=max.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// U+2028 and U+2029 end lines for some readers, though they are no control characters.
fn blank_if_control(c: char) -> char {
    if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_single_and_trimmed() {
        assert_eq!(line(" a\r\nb\x1b[31m\u{85}c\u{2028}d\0 "), "a  b [31m c d");
        assert_eq!(optional_line(" \n\t"), None);
        assert_eq!(word(" Mon 3\n"), "Mon3");
    }

    #[test]
    fn notes_keep_their_lines_and_lose_control_characters() {
        assert_eq!(
            note("\r\n \n  a \t\r\n\r\n\tb\x1b[0m\u{7f}\n\n").as_deref(),
            Some("  a\n\n\tb[0m")
        );
        assert_eq!(note("\n \r\n\0"), None);
    }

    #[test]
    fn identities_are_cleaned_like_git_does() {
        assert_eq!(ident(" \"J. R. <Ewing>\n\", "), "J. R. Ewing");
        assert_eq!(ident("<>.;:"), "");
    }

    #[test]
    fn overlong_text_is_cut_between_characters() {
        assert_eq!(cut("äöüäöü", 8), "äö…");
        assert_eq!(cut("äöü", 6), "äöü");
        assert_eq!(line(&"é".repeat(MAX_LINE)).len(), MAX_LINE - 1);
        assert!(note(&"a\n".repeat(MAX_NOTE)).is_some_and(|note| note.len() <= MAX_NOTE));
    }

    /// Text rich in what these functions treat specially, often near or past their limits.
    fn rough() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<char>().prop_map(String::from),
            "[ \\t\\r\\n.<>\"\u{a0}\u{85}\u{2028}\u{202e}]{1,4}",
            (1..MAX_NOTE).prop_map(|n| "x".repeat(n)),
            (1..MAX_LINE).prop_map(|n| " ".repeat(n)),
        ];
        proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn cleaning_twice_changes_nothing(text in rough()) {
            prop_assert_eq!(line(&line(&text)), line(&text));
            prop_assert_eq!(word(&word(&text)), word(&text));
            prop_assert_eq!(ident(&ident(&text)), ident(&text));
            if let Some(once) = note(&text) {
                prop_assert_eq!(note(&once), Some(once));
            }
        }
    }
}
