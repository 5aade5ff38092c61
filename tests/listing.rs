//! `list` asks for the claims and for nothing else, on remotes of any size.

use std::{collections::BTreeSet, fmt::Write as _, fs};

use crate::support::{
    Kind, Remote, Sandbox, kinds, on,
    proxy::{Mode, Proxy},
    servers::{self, Daemon},
};

/// A hundred thousand branches that are nobody's business, and ten claims.
fn crowded(remote: &Remote) {
    let main = remote.git(&["rev-parse", "main"]);
    let mut packed = "# pack-refs with: peeled fully-peeled sorted \n".to_owned();
    for number in 0..100_000 {
        writeln!(packed, "{main} refs/heads/topic-{number:06}").unwrap();
    }
    fs::write(remote.dir.join("packed-refs"), packed).unwrap();
    for number in 1..=10 {
        let holder = format!("Holder {number} <h{number}@example.com>");
        let refname = format!("refs/claims/issue-{number}");
        remote.plant(&refname, &holder, &format!("claim issue {number} by me\n"));
    }
}

/// What `list` costs on the wire, whichever protocol carries it. Where the answer of a server with one ref more for
/// each of its branches came along, this would be megabytes.
#[test]
fn ten_claims_among_100_000_refs_are_less_than_4_kilobytes() {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kinds::path()) else { return };
    crowded(&remote);
    let below_root = remote.dir.strip_prefix(servers::root()).unwrap().display();
    let clone = sandbox.empty(&remote, "a");
    let mut links = Vec::new();
    if let Some(port) = servers::daemon(Daemon::Writable) {
        let proxy = Proxy::start(port, Mode::Count);
        links.push((format!("git://127.0.0.1:{}/{below_root}", proxy.port), proxy));
    }
    if let Some(web) = servers::web() {
        let proxy = Proxy::start(web.http, Mode::Count);
        links.push((format!("http://127.0.0.1:{}/open/{below_root}", proxy.port), proxy));
        let proxy = Proxy::start(web.https, Mode::Count);
        links.push((format!("https://127.0.0.1:{}/open/{below_root}", proxy.port), proxy));
        sandbox.configure(&format!("[http]\n\tsslCAInfo = {}\n", web.authority));
    }
    for (url, proxy) in links {
        let listed = clone.claim(&["list", "--remote", &url]);
        assert_eq!(listed.code, Some(0), "{listed}");
        for number in 1..=10 {
            assert!(listed.stdout.contains(&format!("issue-{number}")), "{listed}");
        }
        println!("{} bytes for {url}", proxy.bytes());
        assert!(proxy.bytes() < 4096, "{} bytes for {url}", proxy.bytes());
        assert_eq!(proxy.connections(), 1, "{url}");
    }
}

on!(a_list_is_one_ls_refs_and_no_object: path, reftable, file_url);
/// By path there is no socket to count at, so git's own account of the packets tells.
fn a_list_is_one_ls_refs_and_no_object(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let _ = clone.claim(&["take", "42"]).is(0, "claimed");
    remote.plant("refs/claims/issue-7", "Rita Rival <rita@example.com>", "claim issue 7 by me\n");
    let packets = |args: &[&str]| {
        let log = sandbox.path("packets");
        let _ = fs::remove_file(&log);
        let output = clone.run(args).env("GIT_TRACE_PACKET", &log).go();
        assert_eq!(output.code, Some(0), "{output}");
        fs::read_to_string(log).unwrap()
    };
    let list = packets(&["list"]);
    assert_eq!(list.matches("< command=ls-refs").count(), 1, "{list}");
    assert!(list.contains("< ref-prefix refs/claims/"), "{list}");
    assert!(!list.contains("command=fetch") && !list.contains("refs/heads/main"), "{list}");
    let long = packets(&["list", "--long"]);
    assert_eq!(long.matches("< command=ls-refs").count(), 1, "{long}");
    assert_eq!(long.matches("< command=fetch").count(), 1, "{long}");
}

on!(what_is_listed_is_what_is_there: path, reftable, daemon, ssh, ssh_v0, https, https_v0);
fn what_is_listed_is_what_is_there(kind: Kind) {
    let sandbox = Sandbox::new();
    let Some(remote) = sandbox.remote(kind) else { return };
    let clone = sandbox.clone(&remote, "a");
    let none = clone.run(&["list"]).go_json();
    assert!(none.code == Some(0) && none.json()["claims"].as_array().unwrap().is_empty(), "{none}");
    let _ = clone.claim(&["take", "42", "--note", "mine"]).is(0, "claimed");
    let mut expected = BTreeSet::from(["issue-42".to_owned()]);
    for name in ["issue-7", "archive", "zz.top"] {
        remote.plant(&format!("refs/claims/{name}"), "Rita Rival <rita@example.com>", "by me\n");
        expected.insert(name.to_owned());
    }
    // Names that only look like ours to a careless comparison.
    remote.git(&["update-ref", "refs/heads/refs/claims/issue-1", "main"]);
    remote.git(&["update-ref", "refs/claims-of-old/issue-2", "main"]);
    remote.git(&["update-ref", "refs/heads/claims/issue-3", "main"]);
    for args in [&["list"][..], &["list", "--long"]] {
        let output = clone.run(args).go_json();
        assert_eq!(output.code, Some(0), "{output}");
        let json = output.json();
        let claims = json["claims"].as_array().unwrap();
        let names = claims.iter().map(|claim| claim["name"].as_str().unwrap().to_owned());
        assert_eq!(names.collect::<BTreeSet<_>>(), expected, "{output}");
        for claim in claims {
            let name = claim["name"].as_str().unwrap();
            assert_eq!(claim["id"].as_str(), remote.tip(name).as_deref(), "{output}");
            assert_eq!(claim["mine"], name == "issue-42", "{output}");
        }
    }
    let long = clone.claim(&["list", "--long"]);
    assert!(long.stdout.contains("Rita Rival") && long.stdout.contains("Alice Example"), "{long}");
    // Ours is known here already and needs nothing to be read.
    let short = clone.claim(&["list"]);
    assert!(short.stdout.contains("Alice Example"), "{short}");
}

/// More claims than fit one batch, all read.
#[test]
fn many_claims_are_read_in_batches() {
    let sandbox = Sandbox::new();
    for (name, kind) in [("path.git", kinds::path()), ("https.git", kinds::https())] {
        let Some(remote) = sandbox.remote_named(name, kind) else { continue };
        let empty = remote.git_input(&["mktree"], "");
        let mut stream = String::new();
        for number in 1..=600 {
            write!(
                stream,
                "commit refs/claims/issue-{number}\ncommitter Holder {number} <h@example.com> 1764500000 +0000\n\
                 data 6\nby me\n\n"
            )
            .unwrap();
        }
        remote.git_input(&["fast-import", "--quiet"], &stream);
        assert!(!empty.is_empty());
        let clone = sandbox.clone(&remote, &format!("clone-{name}"));
        let output = clone.run(&["list", "--long"]).go_json();
        assert_eq!(output.code, Some(0), "{output}");
        let json = output.json();
        let claims = json["claims"].as_array().unwrap();
        assert_eq!(claims.len(), 600);
        for claim in claims {
            let number = claim["name"].as_str().unwrap().strip_prefix("issue-").unwrap();
            assert!(claim.to_string().contains(&format!("Holder {number}")), "{claim}");
        }
    }
}
