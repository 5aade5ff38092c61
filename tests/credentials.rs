//! git's own ways to a password work, and the password is seen by nobody else.

use std::fs;

use crate::support::{Clone, Remote, Sandbox, kinds, servers};

/// What must be nowhere: the password, and the header that carries it.
const SECRETS: [&str; 2] = [servers::PASSWORD, "YWxpY2U6czNjcmV0LW9mLWFsaWNl"];

/// A remote over TLS, and a clone that was made by path so that it knows no way in.
fn locked_out(sandbox: &Sandbox) -> Option<(Remote, Clone)> {
    let remote = sandbox.remote(kinds::https())?;
    let web = servers::web()?;
    let clone = sandbox.empty(&remote, "a");
    // The helper that other tests use goes; the authority stays.
    let config = fs::read_to_string(sandbox.path("gitconfig")).unwrap();
    let (kept, _) = config.split_once("[http]").unwrap();
    fs::write(
        sandbox.path("gitconfig"),
        format!("{kept}[http]\n\tsslCAInfo = {}\n", web.authority),
    )
    .unwrap();
    Some((remote, clone))
}

/// Takes, lists and releases with whatever way in the clone was given, and looks for the secret everywhere.
#[track_caller]
fn gets_in_without_a_trace(remote: &Remote, clone: &Clone, env: &[(&str, &str)]) {
    let run = |args: &[&str]| {
        let run = env.iter().fold(clone.run(args), |run, (name, value)| run.env(name, value));
        let output = run.go();
        keeps_the_secret(&output.to_string());
        output
    };
    let _ = run(&["take", "42"]).is(0, "claimed issue-42 ");
    keeps_the_secret(&remote.record("issue-42"));
    for entry in walk(&clone.git_path("claims")) {
        assert!(!SECRETS.iter().any(|secret| entry.contains(secret)), "{entry}");
    }
    let _ = run(&["take", "42"]).is(75, "held issue-42 by ");
    for args in [
        &["take", "42", "--json"][..],
        &["list", "--json"],
        &["list", "--long"],
        &["show", "42", "--json"],
    ] {
        let output = run(args);
        assert!(matches!(output.code, Some(0 | 75)), "{output}");
    }
    let _ = run(&["renew", "42"]).is(0, "renewed issue-42 ");
    let _ = run(&["release", "42"]).is(0, "released issue-42 ");
    assert_eq!(remote.tip("issue-42"), None);
}

#[track_caller]
fn keeps_the_secret(text: &str) {
    assert!(!SECRETS.iter().any(|secret| text.contains(secret)), "a secret was told: {text}");
}

/// The names and the contents of all files below a folder, one entry a file.
fn walk(dir: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(format!("{}: {}", path.display(), fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(!found.is_empty(), "no held record in {}", dir.display());
    found
}

#[test]
fn without_any_the_remote_refuses() {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = locked_out(&sandbox) else { return };
    let _ = clone.claim(&["take", "42"]).is(77, "refused issue-42");
    let _ = clone.claim(&["verify", "42"]).is(77, "refused issue-42");
    assert!(remote.witnessed().is_empty());
}

#[test]
fn a_credential_helper() {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = locked_out(&sandbox) else { return };
    let host = format!(
        "https://alice:{}@127.0.0.1:{}\n",
        servers::PASSWORD,
        servers::web().unwrap().https
    );
    fs::write(sandbox.path("store"), host).unwrap();
    clone.set("credential.helper", &format!("store --file={}", sandbox.path("store").display()));
    gets_in_without_a_trace(&remote, &clone, &[]);
}

#[test]
fn a_password_in_the_url() {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = locked_out(&sandbox) else { return };
    let url = remote.url.replace("https://", &format!("https://alice:{}@", servers::PASSWORD));
    clone.point_to(&url);
    gets_in_without_a_trace(&remote, &clone, &[]);
    // The claim is the same with or without the credentials in the URL: same remote, same record.
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    clone.point_to(&remote.url);
    clone.set("http.extraHeader", &format!("Authorization: Basic {}", SECRETS[1]));
    let _ = clone.claim(&["verify", "42"]).is(0, "yours");
    // Nor is it told where something goes wrong.
    clone.git(&["config", "--unset-all", "http.extraHeader"]);
    for url in [
        url.replace("/auth/", "/status/403/"),
        url.replace("origin.git", "nowhere.git"),
        url.replace("alice:", "bob:"),
    ] {
        clone.point_to(&url);
        for args in [&["take", "1"][..], &["take", "1", "--json"], &["list"]] {
            let output = clone.claim(args);
            assert!(matches!(output.code, Some(69 | 77)), "{output}");
            keeps_the_secret(&output.to_string());
        }
    }
}

#[test]
fn a_header_in_the_configuration() {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = locked_out(&sandbox) else { return };
    let base = remote.url.split("/auth/").next().unwrap();
    clone
        .set(&format!("http.{base}/.extraHeader"), &format!("Authorization: Basic {}", SECRETS[1]));
    gets_in_without_a_trace(&remote, &clone, &[]);
}

/// As a CI checkout leaves it: a file of its own, included for this git directory only.
#[test]
fn a_header_in_an_included_file() {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = locked_out(&sandbox) else { return };
    let base = remote.url.split("/auth/").next().unwrap();
    let included = sandbox.path("credentials.config");
    let header =
        format!("[http \"{base}/\"]\n\textraHeader = Authorization: Basic {}\n", SECRETS[1]);
    fs::write(&included, header).unwrap();
    let key = format!("includeIf.gitdir:{}/.git.path", clone.dir.display());
    clone.set(&key, included.to_str().unwrap());
    gets_in_without_a_trace(&remote, &clone, &[]);
}

#[test]
fn a_header_in_the_environment() {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = locked_out(&sandbox) else { return };
    let value = format!("Authorization: Basic {}", SECRETS[1]);
    let env = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "http.extraHeader"),
        ("GIT_CONFIG_VALUE_0", &value),
    ];
    gets_in_without_a_trace(&remote, &clone, &env);
}

#[test]
fn an_askpass_program() {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = locked_out(&sandbox) else { return };
    let body = format!("case $1 in Username*) echo alice ;; *) echo {} ;; esac", servers::PASSWORD);
    let askpass = sandbox.script("askpass", &body);
    gets_in_without_a_trace(&remote, &clone, &[("GIT_ASKPASS", askpass.to_str().unwrap())]);
    clone.set("core.askPass", askpass.to_str().unwrap());
    gets_in_without_a_trace(&remote, &clone, &[]);
}

/// What the remote is called where we tell it is what it is called without the credentials.
#[test]
fn the_url_is_shown_without_its_password() {
    let sandbox = Sandbox::new();
    let Some((remote, clone)) = locked_out(&sandbox) else { return };
    let url = remote.url.replace("https://", &format!("https://alice:{}@", servers::PASSWORD));
    let output = clone.run(&["take", "42", "--remote", &url]).go_json();
    assert_eq!(output.code, Some(0), "{output}");
    let json = output.json();
    keeps_the_secret(&json.to_string());
    let shown = json["remote"]["url"].as_str().unwrap();
    assert!(shown.starts_with("https://") && shown.ends_with("origin.git"), "{shown}");
}
