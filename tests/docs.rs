//! What is written about the program against what the program is: the clap tree, the manual, the README, the
//! changelog and the completions say the same thing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use clap::{CommandFactory, Parser};
use git_claim::{
    cli::{self, Cli, Shell},
    commands::{
        completions,
        man::{self, PAGE},
    },
};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|err| panic!("{path}: {err}"))
}

/// The clap tree with everything filled in that `--help` would show.
fn tree() -> clap::Command {
    let mut tree = Cli::command();
    tree.build();
    tree
}

fn long_options(command: &clap::Command) -> BTreeSet<String> {
    command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .filter_map(|arg| arg.get_long())
        .map(|long| format!("--{long}"))
        .collect()
}

/// The lines of the rendered manual below each heading; subsections count as `SECTION/Subsection`.
fn sections() -> BTreeMap<String, Vec<String>> {
    let mut sections = BTreeMap::<_, Vec<_>>::new();
    let (mut section, mut at) = (String::new(), String::new());
    for line in man::text(PAGE).lines() {
        let depth = line.len() - line.trim_start().len();
        match depth {
            _ if line.is_empty() => {}
            0 => {
                section = line.to_owned();
                at = section.clone();
            }
            3 => at = format!("{section}/{}", line.trim()),
            _ => sections.entry(at.clone()).or_default().push(line.to_owned()),
        }
    }
    sections
}

/// What stands at the margin of the text of a section: the tags of its lists (and its plain paragraphs).
fn tags(section: &[String]) -> impl Iterator<Item = &str> {
    section
        .iter()
        .filter(|line| line.starts_with("       ") && !line.starts_with("        "))
        .map(|line| line.trim())
}

/// Every `--word` of a text.
fn options_in(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'))
        .filter(|word| {
            word.strip_prefix("--")
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
        })
        .map(str::to_owned)
        .collect()
}

/// The codes of a table, its first column.
fn codes<'a>(rows: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    rows.filter_map(|row| row.split_whitespace().next())
        .filter(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_manual_has_every_verb_and_no_other() {
    let sections = sections();
    let verbs: BTreeSet<_> =
        tree().get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let documented: BTreeSet<_> = tags(&sections["COMMANDS"])
        .filter_map(|tag| tag.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert_eq!(documented, verbs, "COMMANDS");

    let synopsis: BTreeSet<_> = sections["SYNOPSIS"]
        .iter()
        .filter_map(|line| line.trim().strip_prefix("git claim "))
        .filter_map(|rest| rest.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert_eq!(synopsis, verbs, "SYNOPSIS");
}

#[test]
fn the_manual_has_the_options_of_every_verb_where_they_belong() {
    let sections = sections();
    let tree = tree();
    let global: BTreeSet<_> = tree
        .get_arguments()
        .filter(|arg| arg.is_global_set())
        .filter_map(|arg| arg.get_long())
        .map(|long| format!("--{long}"))
        .chain(["--help".to_owned(), "--version".to_owned()])
        .collect();
    let documented = |heading: &str| -> BTreeSet<String> {
        sections
            .get(heading)
            .map(|lines| tags(lines).flat_map(options_in).collect())
            .unwrap_or_default()
    };
    assert_eq!(documented("OPTIONS/Of every verb"), global);
    for verb in tree.get_subcommands() {
        let own: BTreeSet<_> = long_options(verb).difference(&global).cloned().collect();
        assert_eq!(
            documented(&format!("OPTIONS/Of {}", verb.get_name())),
            own,
            "{}",
            verb.get_name()
        );

        let start = format!("git claim {}", verb.get_name());
        let mut lines = sections["SYNOPSIS"].iter().skip_while(|l| !l.trim().starts_with(&start));
        let first = lines.next().expect("each verb has its line").clone();
        // What does not fit goes on below, further in.
        let more = lines.take_while(|line| line.starts_with("         "));
        let line = more.fold(first, |line, more| line + more);
        assert_eq!(options_in(&line), own, "SYNOPSIS of {}", verb.get_name());
    }
}

#[test]
fn no_text_names_an_option_that_does_not_exist() {
    let tree = tree();
    let known: BTreeSet<_> = long_options(&tree)
        .into_iter()
        .chain(tree.get_subcommands().flat_map(long_options))
        .collect();
    let phantom: Vec<_> = options_in(&man::text(PAGE)).difference(&known).cloned().collect();
    assert!(phantom.is_empty(), "in the manual: {phantom:?}");
}

/// Every `git claim …` in the code of the README, of the manual's examples and of the help texts, as its words.
fn examples() -> Vec<Vec<String>> {
    let mut code = sections()["EXAMPLES"].join("\n") + "\n";
    let mut tree = tree();
    code.push_str(&tree.render_long_help().to_string());
    for verb in tree.get_subcommands_mut() {
        code.push_str(&verb.render_long_help().to_string());
    }
    for (_, line) in fenced(&read("README.md")) {
        code.push_str(&format!("{line}\n"));
    }
    code.lines()
        // In a usage line the words stand for others, and between backquotes is prose.
        .filter(|line| !line.starts_with("Usage:") && !line.contains('`'))
        .flat_map(|line| line.split(['&', '|', ';']))
        .filter_map(|command| {
            let words = words(command.split('>').next()?);
            let git = words.iter().position(|word| word == "git");
            let at = words.iter().enumerate().position(|(at, word)| {
                word.ends_with("git-claim") || word == "claim" && git.is_some_and(|git| git < at)
            })?;
            Some(words[at..].to_vec())
        })
        .collect()
}

/// The lines of the fenced blocks of a Markdown text, each with its block's language.
fn fenced(markdown: &str) -> Vec<(&str, &str)> {
    let mut language = None;
    let mut lines = Vec::new();
    for line in markdown.lines() {
        match (line.strip_prefix("```"), language) {
            (Some(named), None) => language = Some(named),
            (Some(_), Some(_)) => language = None,
            (None, Some(language)) => lines.push((language, line)),
            (None, None) => {}
        }
    }
    lines
}

/// Words as a shell would see them; quotes of both kinds, no escapes.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ' ' => words.push(String::new()),
            _ => words.last_mut().expect("never empty").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_command_that_is_shown_can_be_typed() {
    let examples = examples();
    assert!(examples.len() > 30, "the search finds them: {examples:#?}");
    for example in examples {
        if let Err(err) = Cli::try_parse_from(&example) {
            assert_eq!(err.exit_code(), 0, "{example:?}\n{err}");
        }
    }
}

#[test]
fn the_exit_codes_are_the_same_everywhere() {
    let help = codes(cli::EXIT_STATUS.lines());
    assert!(help.contains("0") && help.contains("75"), "the table is found: {help:?}");
    assert_eq!(codes(tags(&sections()["EXIT STATUS"])), help, "manual");
    let readme = read("README.md");
    let table =
        readme.lines().filter_map(|line| line.strip_prefix("| ")).map(|row| row.trim_matches('`'));
    assert_eq!(codes(table), help, "README");
}

#[test]
fn the_manual_is_of_this_version() {
    let title = PAGE.lines().find(|line| line.starts_with(".TH ")).expect("a title");
    let words = words(&title.replace('\\', ""));
    let [_, name, section, date, source, _] = &words[..] else { panic!("{title}") };
    assert_eq!((name.as_str(), section.as_str()), ("GIT-CLAIM", "1"));
    assert_eq!(source, &format!("git-claim {}", env!("CARGO_PKG_VERSION")));
    let date: Vec<_> =
        date.split('-').map(|part| (part.len(), part.parse::<u16>().is_ok())).collect();
    assert_eq!(date, [(4, true), (2, true), (2, true)], "a date such as 2026-11-30");
    assert!(read("CHANGELOG.md").contains("## [Unreleased]"));
}

#[test]
fn the_manual_has_gits_sections_in_gits_order() {
    let wanted = [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "COMMANDS",
        "OPTIONS",
        "OUTPUT",
        "EXIT STATUS",
        "CONFIGURATION",
        "ENVIRONMENT",
        "FILES",
        "REMOTES",
        "SEVERAL CLAIMS",
        "OLD CLAIMS",
        "RUNNING A COMMAND",
        "CHOOSING A POLICY",
        "EXAMPLES",
        "SECURITY",
        "NOTES",
        "SEE ALSO",
    ];
    let found: Vec<_> = PAGE.lines().filter_map(|line| line.strip_prefix(".SH ")).collect();
    assert_eq!(found, wanted);
}

#[test]
fn the_documented_object_is_json() {
    let sections = sections();
    let text = sections["OUTPUT/JSON"].join("\n");
    let from = text.find('{').expect("an object");
    let mut objects =
        serde_json::Deserializer::from_str(&text[from..]).into_iter::<serde_json::Value>();
    let object = objects.next().expect("one").expect("valid");
    assert_eq!(object["version"], 1);
    assert_eq!(object["claims"][0]["holder"]["email"], "alice@example.com");
}

#[test]
fn the_committed_completions_are_what_the_program_prints() {
    for (shell, file, verb) in [
        (Shell::Bash, "completions/git-claim.bash", "bash"),
        (Shell::Zsh, "completions/_git-claim", "zsh"),
        (Shell::Fish, "completions/git-claim.fish", "fish"),
    ] {
        assert!(
            read(file) == completions::script(shell),
            "{file} is out of date: cargo run -- completions {verb} > {file}"
        );
    }
}

/// git's own completion for bash, where a package may have put it.
fn gits_completion() -> Option<PathBuf> {
    [
        "/usr/share/bash-completion/completions/git",
        "/usr/local/share/bash-completion/completions/git",
        "/usr/share/git/completion/git-completion.bash",
        "/usr/share/git-core/contrib/completion/git-completion.bash",
        "/etc/bash_completion.d/git-completion.bash",
        "/opt/homebrew/etc/bash_completion.d/git-completion.bash",
    ]
    .into_iter()
    .map(PathBuf::from)
    .find(|path| path.is_file())
}

#[test]
fn bash_completes_git_claim_through_gits_own_completion() {
    let Some(gits) = gits_completion() else {
        let why = "git's completion script for bash was not found: git claim <TAB> is not tested";
        assert!(
            std::env::var_os("GIT_CLAIM_TEST_SERVERS").is_none_or(|v| v != "required"),
            "{why}"
        );
        eprintln!("SKIPPED: {why}");
        return;
    };
    // What bash itself does at a press of TAB: the words so far in variables, the answers in another.
    let script = r#"
        source "$1"; source "$2"
        press_tab() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
            COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()
            __git_wrap__git_main
            printf '%s ->' "$COMP_LINE"; printf ' [%s]' "${COMPREPLY[@]}"; echo
        }
        press_tab git claim ta
        press_tab git -C . claim re
        press_tab git claim take --no
        press_tab git claim --json release --ex
        press_tab git claim list --color al
    "#;
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", script, "bash"])
        .arg(gits)
        .arg(root().join("completions/git-claim.bash"))
        .current_dir(root())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("bash, since git's completion for it is there");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).lines().collect::<Vec<_>>(),
        [
            "git claim ta -> [take ]",
            "git -C . claim re -> [release ] [renew ]",
            "git claim take --no -> [--note ]",
            "git claim --json release --ex -> [--expect ]",
            "git claim list --color al -> [always ]",
        ],
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The README's tour as one shell session: the output of every command, standard error included, is what stands below
/// it. `[WORD]` stands for what differs from run to run, `...` for lines of no interest.
#[test]
fn the_tour_of_the_readme_is_true() {
    let readme = read("README.md");
    let mut steps: Vec<(&str, String)> = Vec::new();
    for (language, line) in fenced(&readme) {
        match (language, line.strip_prefix("$ "), steps.last_mut()) {
            ("console", Some(command), _) => steps.push((command, String::new())),
            ("console", None, Some((_, output))) => output.push_str(&format!("{line}\n")),
            _ => {}
        }
    }
    assert!(steps.len() > 10, "the search finds them: {steps:#?}");

    const BEFORE_EACH: char = '\u{1e}';
    let script: String = std::iter::once("exec 2>&1\n".to_owned())
        .chain(steps.iter().map(|(command, _)| format!("printf '\\036'\n{command}\n")))
        .collect();
    let program = Path::new(env!("CARGO_BIN_EXE_git-claim")).parent().expect("a folder");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::iter::once(program.to_owned()).chain(std::env::split_paths(&path));
    let place = tempfile::tempdir().expect("a place for the session");
    let session = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &script])
        .current_dir(&place)
        .env_clear()
        .env("PATH", std::env::join_paths(path).expect("no colon in a build folder"))
        .env("HOME", place.path())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .expect("bash");
    let output = String::from_utf8(session.stdout).expect("UTF-8");
    let seen: Vec<_> = output.split(BEFORE_EACH).skip(1).collect();
    assert_eq!(seen.len(), steps.len(), "every command ran: {output}");

    let any = |expected: &str| {
        ["[ID]", "[SHORT-ID]", "[WHO]", "[HOST]", "[AGE]", "[TIME]", "[LIMITS]"]
            .iter()
            .fold(expected.to_owned(), |text, word| text.replace(word, "[..]"))
    };
    for ((command, expected), seen) in steps.iter().zip(seen) {
        // The command heads both texts, so that a failure says which one it was.
        let expected = format!("$ {command}\n{}", any(expected));
        snapbox::assert_data_eq!(format!("$ {command}\n{seen}"), snapbox::Data::text(expected));
    }
}
