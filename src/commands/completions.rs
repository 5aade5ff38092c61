//! `git claim completions`: what a shell needs to complete `git-claim` and `git claim`.
//!
//! The bulk is generated from the clap tree. What is added is what the generator cannot know: how each shell's own
//! completion of `git` hands a subcommand on. Nothing is installed from here; where the file goes is the user's choice.

use std::io::{self, Write};

use clap::CommandFactory;
use clap_complete::{generate, shells};

use crate::cli::{self, Cli, Shell};

/// The name that the shell sees on the command line; `git claim` is handed on to it.
const PROGRAM: &str = "git-claim";

/// git's completion for bash calls `_git_<verb>` with `cur`, `prev`, `words` and `cword` set, while the generated
/// function reads `COMP_WORDS` and three arguments. git appends no space to a word, so the words get theirs here;
/// `--remote` completes paths, which must not have one. `__git_cmd_idx` is not set by an old git.
const BASH_THROUGH_GIT: &str = r#"
# Called by git's own completion for `git claim`.
_git_claim() {
    local at="${__git_cmd_idx:-1}"
    local COMP_WORDS=(git-claim "${words[@]:at+1}")
    local COMP_CWORD=$((cword - at))
    _git__claim git-claim "$cur" "$prev"
    [[ "$prev" == --remote ]] || COMPREPLY=("${COMPREPLY[@]/%/ }")
}
"#;

/// clap_complete 4.6 spells the hyphen of the program's name in one way where it notes the verb and in another where it
/// looks the verb up, so that no verb's options would ever be completed (clap-rs/clap#6421).
const BASH_MISSPELLED: &str = "git__subcmd__claim";
const BASH_SPELLED: &str = "git__claim";

/// zsh's completion for git shows the text of this line beside the verb.
const ZSH_DESCRIPTION: &str = "#description claim an issue on the shared remote\n";

/// Prints the completions for the shell that was asked for.
///
/// # Errors
///
/// Those of writing to `out`.
pub fn run(args: &cli::Completions, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(script(args.shell).as_bytes())
}

/// The whole file, ready to be installed.
pub fn script(shell: Shell) -> String {
    let generated = |write: fn(&mut clap::Command, &mut Vec<u8>)| {
        let mut text = Vec::new();
        write(&mut Cli::command(), &mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    match shell {
        Shell::Bash => {
            let text = generated(|tree, to| generate(shells::Bash, tree, PROGRAM, to));
            text.replace(BASH_MISSPELLED, BASH_SPELLED) + BASH_THROUGH_GIT
        }
        Shell::Zsh => {
            let text = generated(|tree, to| generate(shells::Zsh, tree, PROGRAM, to));
            let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            format!("{first}\n{ZSH_DESCRIPTION}{rest}")
        }
        Shell::Fish => generated(|tree, to| generate(shells::Fish, tree, PROGRAM, to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_gets_what_its_own_completion_of_git_looks_for() {
        let bash = script(Shell::Bash);
        assert!(bash.contains("\n_git_claim() {"));
        assert!(bash.contains("_git__claim() {"), "the function that the shim calls");

        assert_eq!(bash.matches("git__claim__subcmd__take").count(), 2, "noted and looked up");

        let zsh = script(Shell::Zsh);
        let mut lines = zsh.lines();
        assert_eq!(lines.next(), Some("#compdef git-claim"));
        assert!(lines.next().is_some_and(|line| line.starts_with("#description ")));

        assert!(script(Shell::Fish).contains("complete -c git-claim"));
    }
}
