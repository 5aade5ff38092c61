//! `git claim man`: the manual page out of the program itself.
//!
//! A package places the page where `git help claim` finds it; `cargo install` cannot, so the program carries it. `--roff`
//! prints the source. Without it the page is rendered here, by a small function for exactly the macros that the page
//! uses, so that no other program is needed. There is no pager here: `git -p claim man` makes git start the user's.

use std::io::{self, Write};

use crate::cli;

/// The page as committed.
pub const PAGE: &str = include_str!("../../man/git-claim.1");

/// The width that text is filled to, in columns.
const WIDTH: usize = 78;
/// Where text starts, as man(1) has it.
const TEXT: usize = 7;
/// Where the heading of a subsection starts.
const SUBHEADING: usize = 3;
/// How much further in the text below a tag starts.
const BELOW_TAG: usize = 8;

/// Prints the page: its source with `--roff`, else as text.
///
/// # Errors
///
/// Those of writing to `out`.
pub fn run(args: &cli::Man, out: &mut dyn Write) -> io::Result<()> {
    if args.roff { out.write_all(PAGE.as_bytes()) } else { out.write_all(text(PAGE).as_bytes()) }
}

/// Renders man(7) source as plain text, without fonts.
///
/// Total: a macro that it does not know is printed as it stands, so that nothing is lost.
pub fn text(roff: &str) -> String {
    let mut page = Page::default();
    for line in roff.lines() {
        page.line(line);
    }
    page.finish()
}

#[derive(Default)]
struct Page {
    out: String,
    /// The words of the paragraph that is being collected.
    paragraph: String,
    /// Where text starts now, beyond what `outer` adds.
    indent: usize,
    /// One entry for each open `.RS`.
    outer: Vec<usize>,
    /// Between `.nf` and `.fi` or `.EX` and `.EE`.
    verbatim: bool,
    /// The next line of text is the tag of a `.TP`.
    tag_follows: bool,
    /// Nothing stands between here and the last heading or blank line.
    fresh: bool,
    footer: String,
}

impl Page {
    fn line(&mut self, line: &str) {
        let Some(request) = line.strip_prefix('.') else { return self.text_line(&plain(line)) };
        let (name, rest) = request.split_once(' ').unwrap_or((request, ""));
        let words = || arguments(rest).iter().map(|word| plain(word)).collect::<Vec<_>>();
        match name {
            "\\\"" => {}
            "TH" => self.title(&words()),
            "SH" => self.heading(0, &words().join(" ")),
            "SS" => self.heading(SUBHEADING, &words().join(" ")),
            "PP" => self.paragraph_at(TEXT),
            "TP" => {
                self.paragraph_at(TEXT);
                self.tag_follows = true;
            }
            "RS" => {
                self.flush();
                self.outer.push(rest.trim().parse().unwrap_or(TEXT));
            }
            "RE" => {
                self.flush();
                self.outer.pop();
            }
            "nf" | "EX" => {
                self.flush();
                self.verbatim = true;
            }
            "fi" | "EE" => self.verbatim = false,
            "B" | "I" => self.text_line(&words().join(" ")),
            "BR" | "BI" | "IR" | "RB" => self.text_line(&words().concat()),
            _ => self.text_line(line),
        }
    }

    fn title(&mut self, words: &[String]) {
        if let [name, section, date, source, manual] = words {
            let title = format!("{name}({section})");
            self.footer = three(source, date, &title);
            self.put(0, &three(&title, manual, &title));
        }
    }

    fn heading(&mut self, column: usize, words: &str) {
        self.paragraph_at(TEXT);
        self.outer.clear();
        self.put(column, words);
        self.fresh = true;
    }

    /// Ends the paragraph; the next one starts below a blank line.
    fn paragraph_at(&mut self, indent: usize) {
        self.flush();
        if !self.fresh {
            self.out.push('\n');
            self.fresh = true;
        }
        self.indent = indent;
    }

    fn text_line(&mut self, words: &str) {
        if self.tag_follows {
            self.tag_follows = false;
            self.put(self.column(), words);
            self.indent += BELOW_TAG;
        } else if self.verbatim {
            self.put(self.column(), words);
        } else {
            self.paragraph.push_str(words);
            self.paragraph.push(' ');
        }
    }

    fn flush(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        let room = WIDTH.saturating_sub(self.column());
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let needed = line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && needed > room {
                self.put(self.column(), &line);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.put(self.column(), &line);
        }
    }

    fn column(&self) -> usize {
        self.indent + self.outer.iter().sum::<usize>()
    }

    fn put(&mut self, column: usize, words: &str) {
        let line = format!("{:column$}{words}", "");
        self.out.push_str(line.trim_end());
        self.out.push('\n');
        self.fresh = false;
    }

    fn finish(mut self) -> String {
        self.paragraph_at(TEXT);
        let footer = std::mem::take(&mut self.footer);
        self.put(0, &footer);
        self.out
    }
}

/// One line with something on the left, in the middle and on the right.
fn three(left: &str, middle: &str, right: &str) -> String {
    let room = WIDTH.saturating_sub(left.chars().count() + right.chars().count());
    format!("{left}{middle:^room$}{right}")
}

/// The arguments of a macro: separated by blanks, or in quotes with a quote doubled inside.
fn arguments(rest: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut chars = rest.trim().chars().peekable();
    while let Some(&first) = chars.peek() {
        let mut word = String::new();
        if first == '"' {
            chars.next();
            while let Some(c) = chars.next() {
                if c == '"' && chars.next_if_eq(&'"').is_none() {
                    break;
                }
                word.push(c);
            }
        } else {
            while let Some(c) = chars.next_if(|c| *c != ' ') {
                word.push(c);
            }
        }
        words.push(word);
        while chars.next_if_eq(&' ').is_some() {}
    }
    words
}

/// Text with its escapes resolved and its fonts dropped.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('f') => drop(chars.next()),
            Some('(') => {
                let name: String = chars.by_ref().take(2).collect();
                match name.as_str() {
                    "aq" => out.push('\''),
                    "lq" | "rq" => out.push('"'),
                    _ => out.push_str(&format!("\\({name}")),
                }
            }
            Some('&') | None => {}
            Some('e') => out.push('\\'),
            Some(other) => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_macros_of_the_page_are_rendered() {
        let source = "\
.\\\" a comment
.TH X 1 2026-01-02 \"x 1\" \"Manual\"
.SH NAME
x \\- does
.BR y (1)
.SS Sub
.TP
\\fB\\-\\-long\\fR \\fIID\\fR
the \\(lqbody\\(rq
.RS 4
.EX
  a \\(aqb\\(aq
.EE
.RE
.PP
.B \"say \"\"hi\"\"\"
";
        let lines: Vec<_> = text(source).lines().map(str::to_owned).collect();
        assert_eq!(lines[0], format!("X(1){:^70}X(1)", "Manual").trim_end());
        assert_eq!(
            lines[1..lines.len() - 1],
            [
                "",
                "NAME",
                "       x - does y(1)",
                "",
                "   Sub",
                "       --long ID",
                "               the \"body\"",
                "                     a 'b'",
                "",
                "       say \"hi\"",
                "",
            ]
        );
        assert!(lines[lines.len() - 1].starts_with("x 1"));
    }

    #[test]
    fn nothing_of_roff_is_left_in_the_rendered_page() {
        for line in text(PAGE).lines() {
            assert!(line.chars().count() <= 86, "too wide for a verbatim line: {line:?}");
            assert!(!line.contains('\\'), "an escape: {line:?}");
            let unknown = line
                .trim_start()
                .strip_prefix('.')
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
            assert!(!unknown, "a macro: {line:?}");
        }
    }

    #[test]
    fn the_raw_page_is_the_committed_one() {
        let mut out = Vec::new();
        run(&cli::Man { roff: true }, &mut out).unwrap();
        assert_eq!(out, PAGE.as_bytes());
    }

    #[test]
    fn any_text_can_be_rendered() {
        for source in ["", ".", ".RE", ".TP", "\\", "\\(", "\\f", ".B \"", ".TH", ".RS x"] {
            text(source);
        }
    }
}
