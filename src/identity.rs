//! Who takes a claim, on which host, in which CI job.
//!
//! Gathering never fails: a bot without a git identity, a container without a user name, still get a claim that says
//! something true. Of the environment nothing is recorded but the identity that git itself would take from it, and, for
//! a job, the URL that a known CI sets; everything else in there may be a secret.

use gix::bstr::ByteSlice;

use crate::{
    checkout::{Checkout, Environment},
    claim::{record::Person, token::Token},
};

/// Who, where, and in which job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// git's author identity: author and committer of the claim commit, which hosts compare with the account.
    pub author: Person,
    /// Who is shown as the holder.
    pub holder: Person,
    /// This machine's name.
    pub host: String,
    /// The page of the CI job that this runs in.
    pub job: Option<String>,
}

impl Identity {
    /// Gathers from the environment, the configuration of `checkout` and the system.
    ///
    /// `who` is the holder to show instead of the author: `Name <email>`, or a name alone, which keeps the author's e-mail.
    pub fn gather(checkout: &Checkout, who: Option<&str>) -> Identity {
        let host = host();
        let author = author(checkout, &host);
        let holder = who.map_or_else(|| author.clone(), |who| named(who, &author));
        Identity { author, holder, host, job: job(checkout.environment()) }
    }
}

/// This machine's name, as it is recorded in claims.
pub fn host() -> String {
    whoami::hostname().ok().and_then(|host| cleaned(&host)).unwrap_or("localhost".into())
}

/// A token that no other take, anywhere, ever had.
///
/// # Errors
/// When the operating system has no random bits to give.
pub fn fresh_token() -> Result<Token, getrandom::Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)?;
    Ok(Token::from_bytes(bits))
}

/// The first that says anything, in git's order (`ident.c`), then the system's idea of the user.
fn author(checkout: &Checkout, host: &str) -> Person {
    let environment = |name| checkout.environment().text(name).and_then(|value| cleaned(&value));
    let configured =
        |key| checkout.config().string(key).and_then(|value| cleaned(&value.to_str_lossy()));
    let system = |answer: whoami::Result<String>| answer.ok().and_then(|name| cleaned(&name));

    let login = || system(whoami::username()).unwrap_or("unknown".into());
    let name = environment("GIT_AUTHOR_NAME")
        .or_else(|| configured("author.name"))
        .or_else(|| configured("user.name"))
        .or_else(|| system(whoami::realname()))
        .unwrap_or_else(login);
    let email = environment("GIT_AUTHOR_EMAIL")
        .or_else(|| configured("author.email"))
        .or_else(|| configured("user.email"))
        .or_else(|| environment("EMAIL"))
        .unwrap_or_else(|| format!("{}@{host}", login()));
    Person { name, email }
}

fn named(who: &str, author: &Person) -> Person {
    if cleaned(who).is_none() {
        return author.clone();
    }
    let holder = Person::parse(who);
    let email = if holder.email.is_empty() { author.email.clone() } else { holder.email };
    Person { email, ..holder }
}

/// What git takes out of names and addresses: `<`, `>` and control characters anywhere, blanks and
/// stray punctuation at the ends. Nothing left is nothing given.
fn cleaned(text: &str) -> Option<String> {
    const CRUD: [char; 6] = [',', ':', ';', '"', '\\', '\''];
    let kept: String =
        text.chars().filter(|c| !matches!(c, '<' | '>') && !c.is_control()).collect();
    let kept = kept.trim_matches(|c: char| c.is_whitespace() || CRUD.contains(&c));
    (!kept.is_empty()).then(|| kept.to_owned())
}

/// The page of the job, if one of the known CIs says that we are in one.
fn job(environment: &Environment) -> Option<String> {
    let get = |name| environment.text(name);
    if get("GITHUB_ACTIONS").is_some() {
        let (server, repository) = (get("GITHUB_SERVER_URL")?, get("GITHUB_REPOSITORY")?);
        let run = get("GITHUB_RUN_ID")?;
        return web_page(&format!(
            "{}/{repository}/actions/runs/{run}",
            server.trim_end_matches('/')
        ));
    }
    if get("TF_BUILD").is_some() {
        let (collection, project) = (get("SYSTEM_COLLECTIONURI")?, get("SYSTEM_TEAMPROJECT")?);
        let build = get("BUILD_BUILDID").filter(|id| id.bytes().all(|b| b.is_ascii_digit()))?;
        let collection = web_page(&collection)?;
        let project = percent_encoded(&project);
        return Some(format!(
            "{}/{project}/_build/results?buildId={build}",
            collection.trim_end_matches('/')
        ));
    }
    // The marker that the CI sets, and the variable that holds the page.
    [
        ("GITLAB_CI", "CI_JOB_URL"),
        ("BUILDKITE", "BUILDKITE_BUILD_URL"),
        ("CIRCLECI", "CIRCLE_BUILD_URL"),
        ("JENKINS_URL", "BUILD_URL"),
    ]
    .into_iter()
    .find(|(marker, _)| get(marker).is_some())
    .and_then(|(_, page)| web_page(&get(page)?))
}

/// An http(s) URL reduced to what names a page: no user-info, no query, no fragment; nothing at all
/// if it holds what no URL holds.
fn web_page(url: &str) -> Option<String> {
    const LONGEST: usize = 1000;
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(scheme.as_str(), "http" | "https") || url.len() > LONGEST {
        return None;
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or_default();
    // A password with a slash in it moves the `@` into the path.
    let odd = host.is_empty() || path.contains('@') || !rest.bytes().all(|b| b.is_ascii_graphic());
    (!odd).then(|| format!("{scheme}://{host}/{path}"))
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode =
        |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkout::sandbox::Sandbox;

    fn anonymous() -> Sandbox {
        Sandbox::with_repository().without("GIT_AUTHOR_NAME").without("GIT_AUTHOR_EMAIL")
    }

    fn gather(sandbox: &Sandbox, who: Option<&str>) -> Identity {
        Identity::gather(&sandbox.open("work").unwrap(), who)
    }

    fn person(name: &str, email: &str) -> Person {
        Person { name: name.into(), email: email.into() }
    }

    #[test]
    fn the_author_is_the_one_git_would_use() {
        let sandbox = anonymous().with("EMAIL", "env@example.com");
        sandbox.git("work", &["config", "user.name", "User"]);
        let expect = |sandbox: &Sandbox, name: &str, email: &str| {
            assert_eq!(gather(sandbox, None).author, person(name, email));
            let ident = sandbox.git("work", &["var", "GIT_AUTHOR_IDENT"]);
            assert!(ident.starts_with(&format!("{name} <{email}> ")), "{ident}");
        };
        expect(&sandbox, "User", "env@example.com");
        sandbox.git("work", &["config", "user.email", "user@example.com"]);
        expect(&sandbox, "User", "user@example.com");
        sandbox.git("work", &["config", "author.name", "Author"]);
        sandbox.git("work", &["config", "author.email", "author@example.com"]);
        expect(&sandbox, "Author", "author@example.com");
        let sandbox = sandbox
            .with("GIT_AUTHOR_NAME", " 'O'Brien <the> \"2nd\",")
            .with("GIT_AUTHOR_EMAIL", "<ob@example.com>");
        expect(&sandbox, "O'Brien the \"2nd", "ob@example.com");
        let identity = gather(&sandbox, None);
        assert_eq!(identity.holder, identity.author);
    }

    #[test]
    fn nobody_in_particular_still_gets_a_name() {
        let sandbox = anonymous().without("HOME");
        sandbox.git("work", &["config", "user.useConfigOnly", "true"]);
        let Identity { author, host, job, .. } = gather(&sandbox, None);
        assert!(!author.name.is_empty() && !host.is_empty() && job.is_none());
        assert!(author.email.ends_with(&format!("@{host}")), "{author:?}");
        let empty = sandbox.with("GIT_AUTHOR_NAME", "").with("GIT_AUTHOR_EMAIL", " <> ");
        assert_eq!(gather(&empty, None).author, author);
    }

    #[cfg(unix)]
    #[test]
    fn odd_bytes_are_replaced() {
        use std::os::unix::ffi::OsStringExt;
        let name = std::ffi::OsString::from_vec(b"J\xf6rg\x1b[31m\n".to_vec());
        let sandbox = anonymous().with("GIT_AUTHOR_NAME", name);
        assert_eq!(gather(&sandbox, None).author.name, "J\u{fffd}rg[31m");
    }

    #[test]
    fn a_holder_by_name_or_by_name_and_address() {
        let author = person("A", "a@example.com");
        for (who, expected) in [
            ("sweep bot", person("sweep bot", "a@example.com")),
            ("Bot <bot@example.com>", person("Bot", "bot@example.com")),
            ("<bot@example.com>", person("bot", "bot@example.com")),
            ("Bot <>", person("Bot", "a@example.com")),
            (" \n", author.clone()),
        ] {
            assert_eq!(named(who, &author), expected, "{who}");
        }
        let identity = gather(&Sandbox::with_repository(), Some("Bot"));
        assert_eq!(identity.author, author);
        assert_eq!(identity.holder, person("Bot", "a@example.com"));
    }

    fn job_in(variables: &[(&str, &str)]) -> Option<String> {
        let pairs = variables.iter().map(|(name, value)| (name.into(), value.into()));
        job(&Environment::Only(pairs.collect()))
    }

    #[test]
    fn the_page_of_each_known_ci() {
        let github = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_SERVER_URL", "https://git.example.com"),
            ("GITHUB_REPOSITORY", "team/app"),
            ("GITHUB_RUN_ID", "77"),
        ];
        assert_eq!(job_in(&github).unwrap(), "https://git.example.com/team/app/actions/runs/77");
        let azure = [
            ("TF_BUILD", "True"),
            ("SYSTEM_COLLECTIONURI", "https://user:pat@azure.example.com/team/"),
            ("SYSTEM_TEAMPROJECT", "Big App"),
            ("BUILD_BUILDID", "9"),
        ];
        assert_eq!(
            job_in(&azure).unwrap(),
            "https://azure.example.com/team/Big%20App/_build/results?buildId=9"
        );
        for (marker, page) in [
            ("GITLAB_CI", "CI_JOB_URL"),
            ("JENKINS_URL", "BUILD_URL"),
            ("BUILDKITE", "BUILDKITE_BUILD_URL"),
            ("CIRCLECI", "CIRCLE_BUILD_URL"),
        ] {
            let url = "https://oauth2:secret@ci.example.com/job/1?token=x#y";
            assert_eq!(
                job_in(&[(marker, "true"), (page, url)]).unwrap(),
                "https://ci.example.com/job/1"
            );
            assert_eq!(job_in(&[(page, url)]), None, "without {marker}");
            assert_eq!(job_in(&[(marker, "true")]), None);
        }
        assert_eq!(job_in(&github[1..]), None);
    }

    #[test]
    fn what_is_no_page_is_not_recorded() {
        for url in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "https://",
            "https://user:pa/ss@example.com/x",
            "https://example.com/a b",
            "https://example.com/\u{1b}[31m",
            "https://example.com/\u{202e}",
        ] {
            assert_eq!(job_in(&[("GITLAB_CI", "true"), ("CI_JOB_URL", url)]), None, "{url}");
        }
    }

    #[test]
    fn no_token_twice() {
        assert_ne!(fresh_token().unwrap(), fresh_token().unwrap());
    }
}
