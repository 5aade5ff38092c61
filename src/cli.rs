//! What can be typed, and nothing more.
//!
//! This module turns arguments into plain structs and carries the text of `-h` and `--help`. It reads no environment,
//! no configuration and no repository, and it refuses to know what a value *means*: names, durations and ids stay text
//! until [`crate::settings`] and [`crate::claim`] read them, so that each has one parser and one error message.
//! `man/git-claim.1` says the same as this tree; a test holds the two together.

use std::{ffi::OsString, num::NonZeroUsize, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

/// The table of exit codes as `--help` shows it; the man page's EXIT STATUS says the same.
pub const EXIT_STATUS: &str = "\
Exit status:
    0  yes: claimed, released, renewed, still yours, listed
    3  no: not yours (any more), or nothing there
   75  held by somebody else: come back later
   69  could not tell: unreachable, timed out, answer lost
   77  the remote refuses: credentials, rights, policy
    2  usage
    1  anything unforeseen
128+n  ended by signal n";

const EXAMPLES: &str = "\
Examples:
    git claim take 42 && ./fix-issue 42
    git claim take 42 --note 'the login loop'
    git claim list --long
    git claim verify 42 && git push
    git claim release 42

`git claim <VERB> --help` says more about a verb, `git claim man` prints the whole manual.";

/// Is this issue mine to start? One atomic step on the git remote you already share.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "git-claim",
    bin_name = "git claim",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    about = "Is this issue mine to start? One atomic step on the git remote you already share",
    long_about = "Is this issue mine to start? One atomic step on the git remote you already share.\n\n\
        A claim is one ref on the remote (refs/claims/issue-42). The remote creates it for exactly one of all who ask, \
        and tells the others who holds it. A claim is advice among people who ask: it does not stop anyone who does not.",
    after_help = "Exit status: 0 yes, 3 no, 75 held, 69 could not tell, 77 refused, 2 usage (see --help)",
    after_long_help = format!("{EXIT_STATUS}\n\n{EXAMPLES}")
)]
pub struct Cli {
    /// The options that every verb takes.
    #[command(flatten)]
    pub global: Global,

    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// Options that may stand before or after the verb.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Where the claims are: a remote's name, a URL or a path
    ///
    /// Where the claims are: a remote's name, a URL or a path; `.` is this repository itself. Without it: the
    /// configuration `claim.remote`, else the only remote, else `origin`.
    #[arg(long, global = true, value_name = "REMOTE", value_hint = ValueHint::AnyPath)]
    pub remote: Option<String>,

    /// Give up on an exchange after this long (30s, 2m)
    ///
    /// Give up on an exchange with the remote after this long, as in `30s` or `2m`. Without it: the configuration
    /// `claim.timeout`, else 30 seconds.
    #[arg(long, global = true, value_name = "DURATION", value_hint = ValueHint::Other)]
    pub timeout: Option<String>,

    /// Print one JSON object instead of text
    ///
    /// Print one JSON object instead of text, also when the answer is no. The manual documents its fields.
    #[arg(long, global = true)]
    pub json: bool,

    /// Print nothing but errors; the exit status is the answer
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// When to use colour
    ///
    /// When to use colour. Without it: the configuration `color.claim`, else `color.ui`, and `NO_COLOR` in the
    /// environment.
    #[arg(long, global = true, value_name = "WHEN", value_enum)]
    pub color: Option<When>,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal only
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The verbs.
#[derive(Debug, Clone, Subcommand)]
pub enum Verb {
    /// Those that ask a remote.
    #[command(flatten)]
    Ask(Box<Ask>),

    /// Print the manual page
    #[command(
        long_about = "Print the manual page, as text or, for man(1), as roff.\n\n\
            `git claim --help` and `git help claim` look for an installed page; this prints the one that belongs to \
            this very program.",
        after_long_help = "\
Examples:
    git -p claim man
    git claim man --roff > ~/.local/share/man/man1/git-claim.1"
    )]
    Man(Man),

    /// Print the completions for a shell
    #[command(after_long_help = "\
Examples:
    git claim completions bash > ~/.local/share/bash-completion/completions/git-claim
    git claim completions zsh > ~/.zfunc/_git-claim
    git claim completions fish > ~/.config/fish/completions/git-claim.fish

In bash the file completes `git-claim` and, with git's own completion, `git claim`.")]
    Completions(Completions),
}

/// The verbs that ask a remote.
#[derive(Debug, Clone, Subcommand)]
pub enum Ask {
    /// Claim an issue, if nobody else has
    #[command(
        long_about = "Claim an issue, if nobody else has.\n\n\
            The remote decides, in one step: of all who ask at the same time exactly one is told `claimed` (exit 0); the \
            others are told `held` (exit 75), by whom, from where and since when.",
        after_long_help = "\
Examples:
    git claim take 42
    git claim take 42 --note 'the login loop, from the hourly sweep'
    git claim take client-release-archive --remote .
    git claim take workspace-3 archive device-7
    list-my-issues | git claim take --any --shuffle -
    git claim take 42 --over 1f6e0c94c2d5 --reason 'ci-7 is gone since Monday'

Exit status: 0 claimed, 75 held by somebody else, 77 refused, 69 could not tell; with --over also 3, it is another by now, \
or gone; of several claims, the worst"
    )]
    Take(Take),

    /// Give a claim back
    #[command(
        long_about = "Give a claim back.\n\n\
            Works from any worktree of the clone that took it, without flags. A claim of somebody else is deleted only \
            by naming the exact id that a report showed (`--expect`); if the claim has moved since, nothing happens.",
        after_long_help = "\
Examples:
    git claim release 42
    git claim release 42 43
    git claim release --all
    git claim release 42 --expect 1f6e0c94c2d5

Exit status: 0 released, 3 not yours or nothing there, 77 refused, 69 could not tell; of several claims, the worst"
    )]
    Release(Release),

    /// List the claims on the remote
    #[command(
        long_about = "List the claims on the remote.\n\n\
            Asks the remote for the names of the claims and nothing else: no object is transferred, and nothing is \
            written anywhere. Holders are shown for the claims that this clone knows; `--long` reads the rest.",
        after_long_help = "\
Examples:
    git claim list
    git claim list --long --json

Exit status: 0 listed (also when there are none), 77 refused, 69 could not tell"
    )]
    List(List),

    /// Show the whole records of claims
    #[command(after_long_help = "\
Examples:
    git claim show 42
    git claim show 42 --json
    git claim show 42 43 client-release-archive

Exit status: 0 shown, 3 nothing there, 77 refused, 69 could not tell; of several claims, the worst")]
    Show(Show),

    /// Report the claims that somebody should look at
    #[command(
        long_about = "Report the claims that somebody should look at.\n\n\
            These are claims that are old, that are silent though their holders promised renewals, that are stamped in \
            the future, and that cannot be read. Oldest first, each with what is known about it and the exact commands \
            to clear it or to take it over, for a person to decide. Nothing is written anywhere, and nothing is cleared.",
        after_long_help = "\
Examples:
    git claim stale
    git claim stale --older-than '3 days' --exit-code
    git claim stale --closed closed-issues.txt
    list-my-issues | git claim stale --all -

Exit status: 0 reported, 3 with --exit-code when something is stale, 77 refused, 69 could not tell"
    )]
    Stale(Stale),

    /// Ask whether claims are still yours
    #[command(
        long_about = "Ask whether claims are still yours.\n\n\
            Run it just before the push or the merge: a claim is not a fence, and whoever can push can delete it.",
        after_long_help = "\
Examples:
    git claim verify 42 && git push
    git claim verify 42 43 client-release-archive && git push
    git claim verify - < my-claims.txt

Exit status: 0 yours, 3 lost or nothing there, 77 refused, 69 could not tell; of several claims, the worst"
    )]
    Verify(Verify),

    /// Say that you are still at it
    #[command(
        long_about = "Say that you are still at it.\n\n\
            Puts a child commit with a new date on the claim: a sign of life for whoever asks how old it is. The id of \
            the claim changes.",
        after_long_help = "\
Examples:
    git claim renew 42
    git claim renew 42 43

Exit status: 0 renewed, 3 lost or nothing there, 77 refused, 69 could not tell; of several claims, the worst"
    )]
    Renew(Renew),

    /// Ask whether the remote can hold claims
    #[command(
        long_about = "Ask whether the remote can hold claims: from here, with your credentials, now.\n\n\
            Tries all that the other verbs ask of a remote on a claim that nobody else uses (doctor-<16 digits>): create \
            it, be refused a second one, list it, read it back, renew it, take it over, delete it, see it gone. Prints a \
            line for each with the time it took, then the remote's words for what failed, what that means for each verb, \
            and what is worth knowing besides. The probe is removed at any end, Ctrl-C included; where it cannot be, the \
            last lines say so and how to clear it later. Works outside of a clone, too.",
        after_long_help = "\
Examples:
    git claim doctor
    git claim doctor --remote https://git.example.com/team/project.git
    git -c claim.prefix=refs/heads/claims/ claim doctor
    git claim doctor --json | jq -r '.steps[] | select(.outcome == \"failed\") | .name'

Exit status: 0 it can hold claims, 77 it refuses something they need, 69 could not tell"
    )]
    Doctor(Doctor),

    /// Run a command for as long as the claim is ours
    #[command(
        long_about = "Run a command for as long as the claim is ours.\n\n\
            Takes the claim, runs the command, renews the claim every so often while it runs, and releases the claim when \
            it ends, however it ends. Signals are passed on to the command. If the claim is lost meanwhile, the command is \
            asked to end.",
        after_long_help = "\
Examples:
    git claim run 42 -- ./fix-issue 42
    git claim run release-build --wait 30m --heartbeat 1m -- make release
    git claim run nightly -E 0 -- ./sweep

Exit status: that of the command, 128+n if signal n ended it, 126 or 127 if it could not be started; 75 held, 77 refused, \
69 could not tell, all without starting it; 3 the claim was lost while it ran"
    )]
    Run(Run),

    /// Ask the holder of a claim to stop
    #[command(
        long_about = "Ask the holder of a claim to stop.\n\n\
            Nothing happens to the claim: a request appears beside it, which `show`, `stale` and a refused take tell of, and \
            which `run` heeds as its `--on-asked` says. It goes when the claim is released, and it is about this holder only.",
        after_long_help = "\
Examples:
    git claim ask branch-checks --reason 'a newer commit is there'
    git claim run branch-checks --wait 10m --on-asked stop -- make check

Exit status: 0 asked, 3 nobody holds it, or another by now, 77 refused, 69 could not tell"
    )]
    Ask(AskToStop),
}

/// What a new claim says, and how long to wait for it.
#[derive(Debug, Clone, Default, Args)]
pub struct Claiming {
    /// Why, in a line for people
    #[arg(long, value_name = "TEXT", value_hint = ValueHint::Other)]
    pub note: Option<String>,

    /// The branch that the work will be on, for people
    #[arg(long, value_name = "BRANCH", value_hint = ValueHint::Other)]
    pub branch: Option<String>,

    /// Who holds the claim, if not your git identity
    ///
    /// Who holds the claim, as in `Nightly Bot` or `Nightly Bot <bot@example.com>`. Without it: `GIT_CLAIM_WHO` in the
    /// environment, else the configuration `claim.who`, else your git identity.
    #[arg(long = "as", value_name = "WHO", value_hint = ValueHint::Other)]
    pub who: Option<String>,

    /// Read the claim again before an `ok` of the remote is believed
    ///
    /// Read the claim again, over a new connection, before an `ok` of the remote is believed: for remotes that say so of a
    /// ref that they did not move. Without it: the configuration `claim.confirm`, else no.
    #[arg(long)]
    pub confirm: bool,

    /// Wait so long for a claim that is held (10m, forever)
    ///
    /// Wait so long for a claim that is held, as in `10m`, and take it the moment it is free; `forever` is a word too, and
    /// `0` is not to wait, which is the default. When the time is up the answer is `held` (75), and nothing was touched.
    #[arg(long, value_name = "DURATION", value_hint = ValueHint::Other)]
    pub wait: Option<String>,

    /// While waiting, ask each holder to stop: the newest is to have it
    ///
    /// While waiting, ask each holder to stop, as `git claim ask` does, unless it began later than we did: the newest of those
    /// who ask so is to have the claim, and the others give up (75). With `--any` no more of them are asked than are wanted.
    #[arg(long, value_name = "REASON", value_hint = ValueHint::Other, requires = "wait")]
    pub ask: Option<String>,
}

/// `git claim take`.
#[derive(Debug, Clone, Args)]
pub struct Take {
    /// An issue (42, #42, issue-42, its URL) or another key
    ///
    /// An issue (`42`, `#42`, `issue-42`, a URL that ends in `/issues/42`) or another key of lower-case letters,
    /// digits, `.`, `_` and `-`. One thing has one spelling on the remote, always. Several are taken all at once or none of
    /// them. `-` reads names from standard input, one on a line; blank lines and lines that begin with `#` and no number are
    /// left out.
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, required = true)]
    pub names: Vec<String>,

    /// Of several names, take the first that is free
    ///
    /// Of several names, take the first that is free, in the given order. `held` (75) is the answer only when all are.
    /// Without it, several names are taken all at once or none of them.
    #[arg(long, conflicts_with_all = ["resume", "over"])]
    pub any: bool,

    /// With --any: take up to so many
    ///
    /// With `--any`: take as many as are free, but no more than so many.
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, requires = "any")]
    pub limit: Option<NonZeroUsize>,

    /// With --any: try them in a random order
    ///
    /// With `--any`: try the names in a random order, so that a fleet that is given one list does not fight over its first.
    #[arg(long, requires = "any")]
    pub shuffle: bool,

    /// Take several one after the other, or none
    ///
    /// Take several names one after the other, in an order that is the same for all, and give back what was taken where one
    /// is held. For remotes that cannot move several refs together; between the first and the last others see some of
    /// them held.
    #[arg(long, conflicts_with_all = ["any", "over"])]
    pub one_by_one: bool,

    /// What it says.
    #[command(flatten)]
    pub claiming: Claiming,

    /// The process that holds the claim, as in `--process $$`
    ///
    /// The process that holds the claim, by its number, as in `--process $$`. `stale` on the same host says whether it
    /// still runs.
    #[arg(long, value_name = "PID", value_hint = ValueHint::Other)]
    pub process: Option<String>,

    /// Promise a renewal every so often (2m)
    ///
    /// Promise a renewal every so often, as in `2m`, so that a report can tell a silent claim from a living one. Somebody
    /// has to keep the promise: `renew` in a loop, or `run`, which does it by itself.
    #[arg(long, value_name = "DURATION", value_hint = ValueHint::Other)]
    pub heartbeat: Option<String>,

    /// Say yes if this clone holds it already
    ///
    /// Say yes if this clone holds the claim already. Without it a second take is `held`, since two jobs may share a
    /// clone.
    #[arg(long)]
    pub resume: bool,

    /// Take over somebody else's claim, if its id is still ID
    ///
    /// Take over somebody else's claim, if its id is still ID: 7 or more hex digits, as a report showed them. If its
    /// holder renewed or released it since, nothing happens. Needs `--reason`.
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other, requires = "reason", conflicts_with_all = ["resume", "wait", "ask"])]
    pub over: Option<String>,

    /// Why it is taken over, for the one whose claim it was
    #[arg(long, value_name = "TEXT", value_hint = ValueHint::Other, requires = "over")]
    pub reason: Option<String>,
}

/// `git claim release`.
#[derive(Debug, Clone, Args)]
pub struct Release {
    /// The claims to give back; `-` reads names from standard input
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, required_unless_present = "all", conflicts_with = "all")]
    pub names: Vec<String>,

    /// Release every claim of this clone on the remote
    #[arg(long)]
    pub all: bool,

    /// Release somebody else's claim, if its id is still ID
    ///
    /// Release somebody else's claim, if its id is still ID: 7 or more hex digits, as a report showed them. For one NAME.
    #[arg(long, value_name = "ID", value_hint = ValueHint::Other, requires = "names", conflicts_with = "all")]
    pub expect: Option<String>,
}

/// `git claim list`.
#[derive(Debug, Clone, Args)]
pub struct List {
    /// Read the records too: holder, host, age and note of every claim
    #[arg(long)]
    pub long: bool,
}

/// `git claim show`.
#[derive(Debug, Clone, Args)]
pub struct Show {
    /// The claims to show; `-` reads names from standard input
    ///
    /// The claims to show. `-` reads names from standard input, one on a line; blank lines and lines that begin with `#` and
    /// no number are left out.
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, required = true)]
    pub names: Vec<String>,
}

/// `git claim stale`.
#[derive(Debug, Clone, Args)]
pub struct Stale {
    /// Look at these claims only; `-` reads names from standard input
    ///
    /// Look at these claims only. `-` reads names from standard input, one on a line; blank lines and lines that begin
    /// with `#` and no number are left out.
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    pub names: Vec<String>,

    /// Call a claim old after this long (90m, 2h30m, 3 days)
    ///
    /// Call a claim old that had no sign of life for this long, as in `90m`, `2h30m` or `3 days`. Without it: the
    /// configuration `claim.staleAfter`, else 24 hours.
    #[arg(long, value_name = "DURATION", value_hint = ValueHint::Other)]
    pub older_than: Option<String>,

    /// Exit with 3 when something is stale
    #[arg(long)]
    pub exit_code: bool,

    /// Show every claim with its state
    #[arg(long)]
    pub all: bool,

    /// Report claims on the closed issues in FILE too (`-` for standard input)
    ///
    /// Report the claims on issues that are closed too. FILE (`-` for standard input) names these issues, one on a line,
    /// as your tracker knows them; blank lines and lines that begin with `#` and no number are left out.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub closed: Option<PathBuf>,
}

/// `git claim verify`.
#[derive(Debug, Clone, Args)]
pub struct Verify {
    /// The claims to ask about; `-` reads names from standard input
    ///
    /// The claims to ask about. `-` reads names from standard input, one on a line; blank lines and lines that begin with `#` and
    /// no number are left out.
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, required = true)]
    pub names: Vec<String>,
}

/// `git claim renew`.
#[derive(Debug, Clone, Args)]
pub struct Renew {
    /// The claims to renew; `-` reads names from standard input
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, required = true)]
    pub names: Vec<String>,
}

/// `git claim doctor`.
#[derive(Debug, Clone, Args)]
pub struct Doctor {}

/// `git claim run`.
#[derive(Debug, Clone, Args)]
pub struct Run {
    /// The claim to hold meanwhile
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    pub name: String,

    /// What it says.
    #[command(flatten)]
    pub claiming: Claiming,

    /// Renew the claim every so often
    ///
    /// Renew the claim every so often, as in `2m`. After ten that were missed a report calls the claim silent.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_hint = ValueHint::Other)]
    pub heartbeat: String,

    /// What to do when the claim is lost
    ///
    /// What to do when the claim is lost while the command runs: `stop` asks the command to end (TERM) and ends it (KILL)
    /// after the grace, `warn` only says so. Either way the exit status is 3.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnLost::Stop)]
    pub on_lost: OnLost,

    /// What to do when somebody asks the holder to stop
    ///
    /// What to do when somebody asks the holder to stop (`git claim ask`): `stop` as for a claim that is lost, and the claim is
    /// released when the command has ended; `warn` only says so.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnAsked::Warn)]
    pub on_asked: OnAsked,

    /// How long the command may take to end when it is asked to
    #[arg(long, value_name = "DURATION", default_value = "10s", value_hint = ValueHint::Other)]
    pub grace: String,

    /// The exit status when the claim is held, instead of 75
    #[arg(short = 'E', long = "held-exit", value_name = "CODE", value_hint = ValueHint::Other)]
    pub held_code: Option<u8>,

    /// Fail if the claim could not be released
    ///
    /// Fail if the claim could not be released: the exit status is then 69 or 77 where the command itself succeeded. Without
    /// it a release that did not happen is reported only.
    #[arg(long)]
    pub strict_release: bool,

    /// The command, and its arguments
    #[arg(last = true, required = true, num_args = 1.., value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// What to do when the claim is lost while the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnLost {
    /// Ask the command to end, then end it
    Stop,
    /// Only say so
    Warn,
}

/// What to do when somebody asks the holder to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnAsked {
    /// Ask the command to end, then end it
    Stop,
    /// Only say so
    Warn,
    /// Nothing
    Ignore,
}

/// `git claim ask`.
#[derive(Debug, Clone, Args)]
pub struct AskToStop {
    /// The claim whose holder is asked
    #[arg(value_name = "NAME", value_hint = ValueHint::Other)]
    pub name: String,

    /// Why, for the one who is asked
    #[arg(long, value_name = "TEXT", value_hint = ValueHint::Other)]
    pub reason: String,
}

/// `git claim man`.
#[derive(Debug, Clone, Args)]
pub struct Man {
    /// Print the page's source, for man(1)
    #[arg(long)]
    pub roff: bool,
}

/// `git claim completions`.
#[derive(Debug, Clone, Args)]
pub struct Completions {
    /// The shell to print them for
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// The shells that git itself can hand completion of `git claim` on from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// bash, alone and through git's own completion
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser, error::ErrorKind};

    use super::*;

    fn parse(line: &str) -> Result<Cli, ErrorKind> {
        let words = std::iter::once("git-claim").chain(line.split_whitespace());
        Cli::try_parse_from(words).map_err(|err| err.kind())
    }

    #[test]
    fn the_tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn global_options_stand_on_either_side_of_the_verb() {
        for line in ["--remote . --json -q take 42", "take 42 --remote . --json -q"] {
            let cli = parse(line).unwrap();
            assert_eq!(cli.global.remote.as_deref(), Some("."));
            assert!(cli.global.json && cli.global.quiet);
        }
    }

    #[test]
    fn a_release_is_of_one_claim_or_of_all() {
        assert!(parse("release 42").is_ok());
        assert!(parse("release 42 --expect 1f6e0c9").is_ok());
        assert!(parse("release --all").is_ok());
        assert_eq!(parse("release").unwrap_err(), ErrorKind::MissingRequiredArgument);
        assert_eq!(parse("release 42 --all").unwrap_err(), ErrorKind::ArgumentConflict);
        assert_eq!(
            parse("release --all --expect 1f6e0c9").unwrap_err(),
            ErrorKind::ArgumentConflict
        );
        assert_eq!(
            parse("release --expect 1f6e0c9").unwrap_err(),
            ErrorKind::MissingRequiredArgument
        );
    }

    #[test]
    fn usage_errors_exit_2_and_help_0() {
        for line in ["", "take", "release 42 --all", "take -42", "--color red list"] {
            let words = std::iter::once("git-claim").chain(line.split_whitespace());
            assert_eq!(Cli::try_parse_from(words).unwrap_err().exit_code(), 2, "{line:?}");
        }
        for line in ["-h", "--help", "take --help", "--version"] {
            let words = std::iter::once("git-claim").chain(line.split_whitespace());
            assert_eq!(Cli::try_parse_from(words).unwrap_err().exit_code(), 0, "{line:?}");
        }
    }

    #[test]
    fn usage_is_spelled_as_people_type_it() {
        let help = Cli::try_parse_from(["git-claim", "take", "--help"]).unwrap_err().to_string();
        assert!(help.contains("Usage: git claim take"), "{help}");
    }
}
