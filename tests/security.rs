//! What a hostile configuration, address or name can make run: nothing that git would not run in its place.
//!
//! Each case is tried with git as well, and what git does is what is expected.

use std::{fs, net::TcpListener, path::PathBuf};

use crate::support::{Clone, Run, Sandbox, kinds};

/// A program that leaves a trace, which the remote's address asks for.
struct Trap {
    script: PathBuf,
    trace: PathBuf,
}

impl Trap {
    fn new(sandbox: &Sandbox) -> Self {
        let trace = sandbox.path("sprung");
        let body = format!("for word; do echo \"$word\"; done >>{}; exit 1", trace.display());
        Trap { script: sandbox.script("trap", &body), trace }
    }

    fn url(&self) -> String {
        format!("ext::{}", self.script.display())
    }

    /// Whether it has run since it was asked last; and the words that it was given.
    fn sprung(&self) -> Option<Vec<String>> {
        let words = fs::read_to_string(&self.trace).ok()?;
        fs::remove_file(&self.trace).unwrap();
        Some(words.lines().map(str::to_owned).collect())
    }
}

/// `-c` and the environment, for git and for us alike.
struct Policy(&'static [(&'static str, &'static str)], &'static [(&'static str, &'static str)]);

const POLICIES: [Policy; 17] = [
    Policy(&[], &[]),
    Policy(&[("protocol.allow", "always")], &[]),
    Policy(&[("protocol.allow", "user")], &[]),
    Policy(&[("protocol.allow", "never")], &[]),
    Policy(&[("protocol.ext.allow", "always")], &[]),
    Policy(&[("protocol.ext.allow", "ALWAYS")], &[]),
    Policy(&[("protocol.ext.allow", "user")], &[]),
    Policy(&[("protocol.ext.allow", "sometimes")], &[]),
    Policy(&[("protocol.allow", "always"), ("protocol.ext.allow", "never")], &[]),
    Policy(&[("protocol.ext.allow", "always"), ("protocol.ext.allow", "never")], &[]),
    Policy(&[], &[("GIT_ALLOW_PROTOCOL", "https:ext")]),
    Policy(&[], &[("GIT_ALLOW_PROTOCOL", "EXT")]),
    Policy(&[("protocol.ext.allow", "always")], &[("GIT_ALLOW_PROTOCOL", "https")]),
    Policy(&[("protocol.ext.allow", "always")], &[("GIT_ALLOW_PROTOCOL", "")]),
    Policy(&[("protocol.ext.allow", "user")], &[("GIT_PROTOCOL_FROM_USER", "0")]),
    Policy(&[("protocol.ext.allow", "user")], &[("GIT_PROTOCOL_FROM_USER", "true")]),
    Policy(&[("protocol.ext.allow", "always")], &[("GIT_PROTOCOL_FROM_USER", "0")]),
];

impl Policy {
    fn typed(&self, args: &[&str]) -> Vec<String> {
        let set = self.0.iter().flat_map(|(key, value)| ["-c".into(), format!("{key}={value}")]);
        set.chain(args.iter().map(|arg| (*arg).to_owned())).collect()
    }

    /// Runs `git <args>` under it; `git claim …` is us. Tells whether it ended well.
    fn run(&self, clone: &Clone, args: &[&str]) -> bool {
        let args = self.typed(args);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let run = clone.run_git(&args);
        self.1.iter().fold(run, |run, (name, value)| run.env(name, value)).go().code == Some(0)
    }
}

/// However the address gets there, by configuration or as it is typed.
#[test]
fn a_command_for_an_address_runs_where_git_runs_it() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let trap = Trap::new(&sandbox);
    let url = trap.url();
    let rewritten = format!("url.{url} .insteadOf");
    let pushed = format!("url.{url} .pushInsteadOf");
    let typed = ["claim", "list", "--remote", &url];
    let (mut ran, mut tried) = (0, 0);
    for (name, settings, asked) in [
        ("url", &[("remote.origin.url", &*url)][..], &["claim", "list"][..]),
        ("push", &[("remote.origin.pushurl", &*url)], &["claim", "list"]),
        ("rewritten", &[(&*rewritten, &*remote.url)], &["claim", "list"]),
        ("pushed", &[(&*pushed, &*remote.url)], &["claim", "list"]),
        ("set", &[("claim.remote", &*url)], &["claim", "list"]),
        ("typed", &[], &typed),
    ] {
        let clone = sandbox.clone(&remote, name);
        for (key, value) in settings {
            clone.git(&["config", key, value]);
        }
        // How it gets there changes nothing about what is allowed: a few will do.
        let policies = POLICIES.iter().step_by(if name == "url" { 1 } else { 4 });
        let to = if matches!(name, "set" | "typed") { &*url } else { "origin" };
        for policy in policies {
            policy.run(&clone, &["push", "--quiet", to, "HEAD:refs/heads/x"]);
            let git = trap.sprung().is_some();
            policy.run(&clone, asked);
            let ours = trap.sprung().is_some();
            assert_eq!(ours, git, "{name}, {:?} {:?}", policy.0, policy.1);
            ran += usize::from(git);
            tried += 1;
        }
    }
    assert!(ran > tried / 4 && ran < tried, "{ran} of {tried}: both ends were seen");
    // Whatever is asked for, not only where one reads.
    let clone = sandbox.at("url");
    for args in [&["claim", "take", "42"][..], &["claim", "release", "42"], &["claim", "doctor"]] {
        assert!(!POLICIES[0].run(&clone, args) && trap.sprung().is_none(), "{args:?}");
    }
}

/// By path, where git refuses and where it does not.
#[test]
fn a_transport_that_git_refuses_is_refused() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let mut refused = 0;
    for policy in [
        Policy(&[], &[]),
        Policy(&[("protocol.file.allow", "never")], &[]),
        Policy(&[("protocol.file.allow", "always")], &[("GIT_PROTOCOL_FROM_USER", "0")]),
        Policy(&[], &[("GIT_PROTOCOL_FROM_USER", "0")]),
        Policy(&[], &[("GIT_ALLOW_PROTOCOL", "https:ssh")]),
        Policy(&[("protocol.allow", "never")], &[("GIT_ALLOW_PROTOCOL", "file")]),
    ] {
        let git = policy.run(&clone, &["ls-remote", "--quiet", "origin"]);
        assert_eq!(policy.run(&clone, &["claim", "list"]), git, "{:?} {:?}", policy.0, policy.1);
        refused += usize::from(!git);
    }
    assert_eq!(refused, 3);
}

/// What an address can hold that a program might take for an option.
fn options(trap: &Trap) -> Vec<String> {
    let run = trap.script.display();
    let proxy = format!("-oProxyCommand={run}");
    vec![
        format!("ssh://{proxy}/x"),
        format!("ssh://{}/x", proxy.replace('/', "%2f")),
        format!("ssh://{proxy}@host.invalid/x"),
        format!("ssh://{}@host.invalid/x", proxy.replace('/', "%2f")),
        format!("ssh://host.invalid:{proxy}/x"),
        format!("ssh://[{}]/x", proxy.replace('/', "%2f")),
        "ssh://-oPermitLocalCommand=yes/x".into(),
        "ssh://user@-host/x".into(),
        "ssh://host.invalid/-x".into(),
        "ssh://host.invalid:-1/x".into(),
        "git+ssh://-oX/x".into(),
        "ssh+git://-oX@host.invalid/x".into(),
        format!("{proxy}:x"),
        "-oX:foo".into(),
        "user@-oX:foo".into(),
        "-oX@host.invalid:foo".into(),
        "[-oX]:foo".into(),
        "host.invalid:-x".into(),
        format!("--upload-pack={run}"),
        format!("--receive-pack={run}"),
        format!("--upload-pack={run}::x"),
        format!("--upload-pack={run}://x"),
        "-::x".into(),
        "::x".into(),
        "://x".into(),
        "-".into(),
        "--".into(),
        "file://-x".into(),
        "git://-oX/x".into(),
        "git://-oX:9418/x".into(),
        "https://-oX/x".into(),
        format!("ext::{run}"),
        format!("ssh::{run}"),
    ]
}

#[test]
fn an_address_is_never_an_option() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let trap = Trap::new(&sandbox);
    // The ssh that is found by its name writes down what it is given.
    fs::create_dir(sandbox.path("shims")).unwrap();
    fs::copy(&trap.script, sandbox.path("shims/ssh")).unwrap();
    let path = format!("{}:{}", sandbox.path("shims").display(), std::env::var("PATH").unwrap());
    let clone = sandbox.clone(&remote, "a");
    let run = |run: Run| {
        let output = run.env("PATH", &path).env("GIT_TERMINAL_PROMPT", "0").go();
        (output, trap.sprung())
    };
    let (_, words) = run(clone.run(&["list", "--remote", "ssh://host.invalid/x"]));
    assert!(words.is_some_and(|words| words.contains(&"host.invalid".into())), "it is a trap");
    for url in options(&trap) {
        let (_, git) = run(clone.run_git(&["ls-remote", "--", &url]));
        let typed = format!("--remote={url}");
        clone.git(&["config", "remote.origin.url", &url]);
        clone.git(&["config", "claim.remote", "origin"]);
        let configured = run(clone.run(&["list"]));
        clone.git(&["config", "claim.remote", &url]);
        let named = run(clone.run(&["list"]));
        for (output, words) in [run(clone.run(&["list", &typed])), configured, named] {
            assert!(!matches!(output.code, Some(0 | 1 | 101)), "{url}\n{output}");
            let Some(words) = words else { continue };
            assert!(git.is_some(), "git starts nothing for {url}: {words:?}");
            let mut words = words.iter();
            while let Some(word) = words.next() {
                match word.as_str() {
                    "-o" => assert!(
                        words.next().is_some_and(|word| {
                            ["SendEnv=GIT_PROTOCOL", "BatchMode=yes"].contains(&word.as_str())
                        }),
                        "{url}"
                    ),
                    "-p" => assert!(words.next().is_some_and(|port| port.parse::<u16>().is_ok())),
                    other => assert!(!other.starts_with('-'), "{url}: {other}"),
                }
            }
        }
    }
}

/// Neither what is typed for a claim nor what a remote is called gets to a program as an option.
#[test]
fn a_name_is_never_an_option() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let trap = Trap::new(&sandbox);
    let clone = sandbox.clone(&remote, "a");
    let option = format!("--upload-pack={}", trap.script.display());
    for args in [
        &["take", &option][..],
        &["take", "--", &option],
        &["show", "--", "-oX"],
        &["release", "--expect", &option, "42"],
        &["take", "42", "--over", "--upload-pack=x", "--reason", "r"],
    ] {
        let _ = clone.claim(args).is(2, "");
    }
    let _ = clone.run(&["take", "-"]).input(format!("{option}\n")).go().is(2, "");
    clone.git(&["config", &format!("remote.{option}.url"), &remote.url]);
    clone.git(&["config", "--unset", "remote.origin.url"]);
    clone.git(&["config", "--unset", "remote.origin.fetch"]);
    let _ = clone.claim(&["list"]).is(2, "").says("begins with '-'");
    assert_eq!((trap.sprung(), remote.witnessed().len()), (None, 0));
}

/// The configuration of the clone is trusted as far as git trusts it: who can write it can run commands by `git push` too.
#[test]
fn what_git_runs_by_the_clones_own_configuration_is_run() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let trap = Trap::new(&sandbox);
    let script = trap.script.to_str().unwrap();
    for (name, url, key) in [
        ("ssh", "ssh://host.invalid/x", "core.sshCommand"),
        ("upload", &*remote.url, "remote.origin.uploadpack"),
    ] {
        let clone = sandbox.clone(&remote, name);
        clone.point_to(url);
        clone.git(&["config", key, script]);
        let _ = clone.run_git(&["ls-remote", "origin"]).go();
        assert!(trap.sprung().is_some(), "git runs {key}");
        let _ = clone.claim(&["list"]);
        assert!(trap.sprung().is_some(), "{key} is not run");
    }
    let clone = sandbox.clone(&remote, "receive");
    clone.git(&["config", "remote.origin.receivepack", script]);
    let _ = clone.run_git(&["push", "--quiet", "origin", "HEAD:refs/heads/x"]).go();
    assert!(trap.sprung().is_some(), "git runs it to push");
    let _ = clone.claim(&["list"]).is(0, "0 claims");
    assert_eq!(trap.sprung(), None, "nothing is written");
    assert_ne!(clone.claim(&["take", "42"]).code, Some(0));
    assert!(trap.sprung().is_some(), "it is not run");
}

/// A repository of somebody else's is used where `safe.directory` says so, on either side, and nowhere else.
#[test]
fn a_repository_of_somebody_elses_is_left_to_git_to_judge() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    // git's own switch for its tests: whatever it finds belongs to somebody else.
    let others = |args: &[&str]| clone.run_git(args).env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    // What the repository says of itself counts for nothing.
    clone.git(&["config", "safe.directory", "*"]);
    let mut good = Vec::new();
    for trusted in [None, Some(&clone.dir), Some(&remote.dir)] {
        if let Some(path) = trusted {
            sandbox.configure(&format!("[safe]\n\tdirectory = {}\n", path.display()));
        }
        let git = others(&["ls-remote", "origin"]).go();
        let told = others(&["claim", "list"]).go();
        assert_eq!(told.code == Some(0), git.code == Some(0), "{git}{told}");
        good.push(told.code == Some(0));
        if told.code != Some(0) {
            let _ = told.says("dubious ownership");
        }
    }
    assert_eq!(good, [false, false, true], "both have to be trusted");
}

/// What is sent to git-daemon is one request for one path, also where the address holds more of one in disguise.
#[test]
fn an_address_cannot_say_more_to_a_daemon_than_one_request() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    let clone = sandbox.clone(&remote, "a");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    for path in ["x%0ahost=other", "x%00host=other%00"] {
        let url = format!("git://127.0.0.1:{port}/{path}");
        let _ = clone.claim(&["list", "--remote", &url]).is(2, "").says("line feed");
        assert!(listener.accept().is_err(), "{url} was asked for");
    }
}
