//! report-status: what receive-pack says became of the commands (gitprotocol-pack(5), "Report Status").
//!
//! Pure. Only an `ok` for exactly our ref, done exactly as asked, counts as done; a line about another ref, a line said
//! twice, or a report that breaks off is no answer. In version 2 of the report a server says in `option` lines that it did
//! something else instead (a `proc-receive` hook may put the commit under another name).

use std::collections::HashMap;

use gix::{
    bstr::{BStr, BString, ByteSlice},
    protocol::transport::packetline::{
        PacketLineRef,
        decode::{Stream, streaming},
    },
};

/// What the report says about one ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// The command was carried out.
    Ok,
    /// It was not, in the server's words; they may be empty.
    Ng(String),
}

/// Whether an option of an `ok` says that the command was not carried out as it stood.
fn changes(option: &[u8]) -> bool {
    [b"refname ".as_slice(), b"old-oid ", b"new-oid "].iter().any(|name| option.starts_with(name))
}

/// A reason is a line for people; more than this of it is not kept.
const LONGEST_REASON: usize = 2_000;

/// Why a report answers nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// It broke off.
    #[error("the report broke off")]
    BrokenOff,
    /// Not in the form of a report.
    #[error("a report of another form")]
    Malformed,
    /// The ref is not in it, or more than once.
    #[error("a report that does not say what became of the ref")]
    NotOurs,
}

/// What a report says, by ref.
#[derive(Debug)]
pub struct Report {
    unpack: BString,
    /// Nothing where there is more than one line about it.
    refs: HashMap<BString, Option<Status>>,
}

impl Report {
    /// What became of `refname`.
    pub fn of(&self, refname: &BStr) -> Result<Status, ReportError> {
        let status = self.refs.get(refname).cloned().flatten().ok_or(ReportError::NotOurs)?;
        match status {
            Status::Ok if self.unpack != "ok" => Err(ReportError::Malformed),
            Status::Ng(reason) if self.unpack != "ok" => {
                Ok(Status::Ng(format!("{reason}: unpack {}", kept(&self.unpack))))
            }
            status => Ok(status),
        }
    }
}

/// Reads a whole report in packet lines, from `unpack …` to the flush packet.
pub fn parse(report: &[u8]) -> Result<Report, ReportError> {
    let mut lines = Lines(report);
    let unpack = lines.next()?.ok_or(ReportError::Malformed)?;
    let unpack = unpack.strip_prefix(b"unpack ").ok_or(ReportError::Malformed)?.into();
    let mut refs: HashMap<BString, Option<Status>> = HashMap::new();
    let mut last = None;
    while let Some(line) = lines.next()? {
        if let Some(option) = line.strip_prefix(b"option ") {
            if changes(option)
                && let Some(status) = last.as_ref().and_then(|name| refs.get_mut(name))
                && *status == Some(Status::Ok)
            {
                let instead = format!("the server did something else instead: {}", kept(option));
                *status = Some(Status::Ng(instead));
            }
            continue;
        }
        let (name, status) = if let Some(name) = line.strip_prefix(b"ok ") {
            (name, Status::Ok)
        } else if let Some(rest) = line.strip_prefix(b"ng ") {
            let (name, reason) = rest.split_once_str(" ").unwrap_or((rest, b""));
            (name, Status::Ng(kept(reason)))
        } else {
            return Err(ReportError::Malformed);
        };
        let name = BString::from(name);
        refs.entry(name.clone()).and_modify(|known| *known = None).or_insert(Some(status));
        last = Some(name);
    }
    Ok(Report { unpack, refs })
}

/// As much of a reason as is kept.
fn kept(reason: &[u8]) -> String {
    reason[..reason.len().min(LONGEST_REASON)].to_str_lossy().into_owned()
}

/// The payloads up to the flush packet, each without its line feed.
struct Lines<'a>(&'a [u8]);

impl<'a> Lines<'a> {
    fn next(&mut self) -> Result<Option<&'a [u8]>, ReportError> {
        match streaming(self.0) {
            Ok(Stream::Complete { line: PacketLineRef::Data(payload), bytes_consumed }) => {
                self.0 = &self.0[bytes_consumed..];
                Ok(Some(payload.strip_suffix(b"\n").unwrap_or(payload)))
            }
            Ok(Stream::Complete { line: PacketLineRef::Flush, .. }) => Ok(None),
            Ok(Stream::Incomplete { .. }) => Err(ReportError::BrokenOff),
            Ok(Stream::Complete { .. }) | Err(_) => Err(ReportError::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(lines: &[&str]) -> Vec<u8> {
        let mut bytes: String =
            lines.iter().map(|line| format!("{:04x}{line}\n", line.len() + 5)).collect();
        bytes.push_str("0000");
        bytes.into_bytes()
    }

    fn of(lines: &[&str]) -> Result<Status, ReportError> {
        parse(&report(lines))?.of("refs/claims/issue-4".into())
    }

    #[test]
    fn only_ok_for_our_ref_is_ok() {
        assert_eq!(of(&["unpack ok", "ok refs/claims/issue-4"]), Ok(Status::Ok));
        assert_eq!(
            of(&["unpack ok", "ng refs/claims/issue-4 failed to update ref"]),
            Ok(Status::Ng("failed to update ref".into()))
        );
        assert_eq!(of(&["unpack ok", "ng refs/claims/issue-4"]), Ok(Status::Ng(String::new())));
        assert_eq!(
            of(&["unpack no space", "ng refs/claims/issue-4 unpacker error"]),
            Ok(Status::Ng("unpacker error: unpack no space".into()))
        );
    }

    #[test]
    fn what_was_done_in_another_way_is_not_done() {
        let done = ["unpack ok", "ok refs/claims/issue-4", "option forced-update"];
        assert_eq!(of(&done), Ok(Status::Ok), "an option that changes nothing");
        for option in ["option refname refs/pulls/1", "option new-oid 0123"] {
            let status = of(&["unpack ok", "ok refs/claims/issue-4", option]);
            assert!(matches!(status, Ok(Status::Ng(_))), "{status:?}");
            let about_another = of(&["unpack ok", "ok refs/claims/issue-4", "ok refs/x", option]);
            assert_eq!(about_another, Ok(Status::Ok));
        }
    }

    #[test]
    fn anything_else_is_no_answer() {
        for lines in [
            &[][..],
            &["unpack ok"],
            &["ok refs/claims/issue-4"],
            &["unpack ok", "ok refs/claims/issue-42"],
            &["unpack ok", "ok refs/claims/issue-4", "ok refs/claims/issue-4"],
            &["unpack ok", "ok refs/claims/issue-4", "ng refs/claims/issue-4 no"],
            &["unpack failed", "ok refs/claims/issue-4"],
            &["unpack ok", "fine refs/claims/issue-4"],
        ] {
            assert!(of(lines).is_err(), "{lines:?}");
        }
    }

    #[test]
    fn a_length_is_four_digits() {
        for length in ["+01b", "-01b", " 01b", "0x1b"] {
            let cheat = format!("000eunpack ok\n{length}ok refs/claims/issue-4\n0000");
            assert_eq!(parse(cheat.as_bytes()).err(), Some(ReportError::Malformed), "{length}");
        }
    }

    #[test]
    fn what_is_kept_of_a_reason_is_bounded() {
        let long = "x".repeat(60_000);
        for lines in [
            [&*format!("unpack {long}"), "ng refs/claims/issue-4 no", "option x"],
            ["unpack ok", "ok refs/claims/issue-4", &*format!("option refname {long}")],
            ["unpack ok", &*format!("ng refs/claims/issue-4 {long}"), "option x"],
        ] {
            let Ok(Status::Ng(reason)) = of(&lines) else { panic!("{lines:?}") };
            assert!((LONGEST_REASON..LONGEST_REASON + 100).contains(&reason.len()));
        }
    }

    #[test]
    fn every_cut_is_no_answer() {
        let whole = report(&["unpack ok", "ok refs/claims/issue-4"]);
        for end in 0..whole.len() {
            assert!(parse(&whole[..end]).is_err(), "cut at {end}");
        }
    }
}
