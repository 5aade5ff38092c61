//! The real servers: git daemon, sshd, nginx with fcgiwrap and `git http-backend`.
//!
//! Each is started when the first test asks for it and shared by all tests of the process: they serve everything
//! below one folder, [`root`]. Nothing outlives the process, however it ends: every server runs in a process group of
//! its own beside a watcher that reads a pipe held by us, and a closed pipe ends the group.
//!
//! A missing server program is a skip that says so, unless `GIT_CLAIM_TEST_SERVERS=required` makes it a failure.

use std::{
    env, fs,
    io::{self, Write},
    net::{TcpListener, TcpStream},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
    thread,
    time::Duration,
};

/// A server process that ends when the value is dropped, or when this process ends.
pub(crate) struct Guarded(Child);

impl Guarded {
    /// Starts `args` in an environment that holds nothing but what servers need.
    fn start(args: &[&str]) -> Self {
        // `kill 0` reaches the whole group: the server, its workers, and the watcher itself, which has had its say.
        let script = "exec 3<&0 </dev/null; (trap '' TERM; cat <&3 >/dev/null; kill -TERM 0) & exec 3<&-; exec \"$@\"";
        let child = Command::new("sh")
            .args(["-c", script, "guarded"])
            .args(args)
            .env_clear()
            .envs(server_env())
            .current_dir(root())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        Guarded(child)
    }

    fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// The folder that all servers serve and all sandboxes live in. Removed after the process has ended.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let dir = tempfile::Builder::new().prefix("git-claim-tests-").tempdir().unwrap().keep();
        let dir = dir.canonicalize().unwrap();
        // Servers that run as another user look inside.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(
            dir.join("server.gitconfig"),
            "[safe]\n\tdirectory = *\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[receive]\n\tautogc = false\n",
        )
        .unwrap();
        let script = "cat >/dev/null; sleep 1; rm -rf \"$1\" || { sleep 1; rm -rf \"$1\"; }";
        let janitor = Command::new("sh")
            .args(["-c", script, "janitor"])
            .arg(&dir)
            .env_clear()
            .env("PATH", env::var("PATH").unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        // Not waited for: its pipe closes when this process ends, and that is its signal.
        std::mem::forget(janitor);
        dir
    })
}

/// The environment in which servers and the git commands on bare repositories run.
pub(crate) fn server_env() -> Vec<(String, String)> {
    let dir = root_name();
    vec![
        ("PATH".to_owned(), env::var("PATH").unwrap()),
        ("HOME".to_owned(), dir.clone()),
        ("GIT_CONFIG_GLOBAL".to_owned(), format!("{dir}/server.gitconfig")),
        ("GIT_CONFIG_NOSYSTEM".to_owned(), "1".to_owned()),
    ]
}

pub(crate) fn root_name() -> String {
    root().to_str().unwrap().to_owned()
}

/// Finds a program, also where system daemons live.
pub(crate) fn program(name: &str) -> Option<String> {
    let path = env::var("PATH").unwrap();
    let mut folders = env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders
        .find(|dir| dir.join(name).is_file())
        .map(|dir| dir.join(name).to_str().unwrap().to_owned())
}

/// Says that tests are skipped and why, or fails where the servers are required.
pub(crate) fn skip<T>(why: &str) -> Option<T> {
    let required = env::var("GIT_CLAIM_TEST_SERVERS").is_ok_and(|value| value == "required");
    assert!(!required, "GIT_CLAIM_TEST_SERVERS=required, but {why}");
    let current = thread::current();
    let test = current.name().unwrap_or("a test");
    // Not by `eprintln`, which the test runner swallows for tests that pass.
    let line = format!("SKIPPED: {test} and all others that need the same: {why}\n");
    let _ = io::stderr().write_all(line.as_bytes());
    None
}

/// Starts a server on a free port and waits until it answers. A port may be lost to somebody between choice and use.
fn listening(start: impl Fn(u16) -> Guarded, what: &str) -> Option<(Guarded, u16)> {
    listening_at(free_port, start, what)
}

fn listening_at(
    choose: impl Fn() -> u16,
    start: impl Fn(u16) -> Guarded,
    what: &str,
) -> Option<(Guarded, u16)> {
    for _ in 0..5 {
        let port = choose();
        let mut server = start(port);
        for _ in 0..500 {
            if server.has_ended() {
                break;
            }
            if TcpStream::connect(("127.0.0.1", port)).is_ok() && !server.has_ended() {
                return Some((server, port));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    skip(&format!("{what} does not start"))
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

/// Runs a helper program of the set-up to its end.
fn tool(args: &[&str]) -> Option<()> {
    let output = Command::new(args[0]).args(&args[1..]).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Some(()),
        Ok(output) => skip(&format!("{args:?}: {}", String::from_utf8_lossy(&output.stderr))),
        Err(error) => skip(&format!("{args:?}: {error}")),
    }
}

/// How `git daemon` serves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Daemon {
    /// Pushes are let in.
    Writable,
    /// `receive-pack` is switched off, as it is by default.
    ReadOnly,
}

/// A `git daemon` of one's own, which ends with the value: at `port`, or at any.
pub(crate) fn own_daemon(port: Option<u16>) -> Option<(Guarded, u16)> {
    let choose = || port.unwrap_or_else(free_port);
    listening_at(choose, |port| start_daemon(port, true), "git daemon")
}

fn start_daemon(port: u16, enable: bool) -> Guarded {
    let (port, base) = (format!("--port={port}"), format!("--base-path={}", root_name()));
    let mut args = vec!["git", "daemon", "--listen=127.0.0.1", &port, &base];
    args.extend(["--export-all", "--reuseaddr", "--max-connections=0", "--informative-errors"]);
    if enable {
        args.push("--enable=receive-pack");
    }
    Guarded::start(&args)
}

/// The port of `git daemon`.
pub(crate) fn daemon(how: Daemon) -> Option<u16> {
    static WRITABLE: OnceLock<Option<(Guarded, u16)>> = OnceLock::new();
    static READ_ONLY: OnceLock<Option<(Guarded, u16)>> = OnceLock::new();
    let (cell, enable) = match how {
        Daemon::Writable => (&WRITABLE, true),
        Daemon::ReadOnly => (&READ_ONLY, false),
    };
    let server = cell.get_or_init(|| listening(|port| start_daemon(port, enable), "git daemon"));
    server.as_ref().map(|(_, port)| *port)
}

/// What to put before a command so that it may not write what is ours, where this can be had.
pub(crate) fn as_nobody() -> Option<[&'static str; 4]> {
    if program("setpriv").is_none() || !is_root() {
        return skip("a server process of another user needs setpriv and root");
    }
    Some(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
}

/// What to put before a command so that file modes bind it, where this can be had. It stays the same user.
pub(crate) fn bound_by_modes() -> Option<&'static str> {
    match (is_root(), program("setpriv")) {
        (false, _) => Some(""),
        (true, Some(_)) => Some("setpriv --bounding-set=-all --inh-caps=-all"),
        (true, None) => skip("root is bound by file modes with setpriv only"),
    }
}

/// Whether this process may do anything, so that file modes bind nobody.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0)
}

/// A running sshd and the client configurations for it.
pub(crate) struct Sshd {
    _server: Guarded,
    pub(crate) port: u16,
    /// `ssh -F <this>` gets in.
    pub(crate) client: String,
    /// `ssh -F <this>` offers a key that the server does not know.
    pub(crate) stranger: String,
}

/// An sshd that passes `GIT_PROTOCOL` on (`v2`), or one that does not, as many do not.
pub(crate) fn sshd(v2: bool) -> Option<&'static Sshd> {
    static V2: OnceLock<Option<Sshd>> = OnceLock::new();
    static V0: OnceLock<Option<Sshd>> = OnceLock::new();
    let cell = if v2 { &V2 } else { &V0 };
    cell.get_or_init(|| start_sshd(v2)).as_ref()
}

fn start_sshd(v2: bool) -> Option<Sshd> {
    let Some(sshd) = program("sshd") else { return skip("there is no sshd") };
    let dir = format!("{}/ssh-{}", root_name(), if v2 { "v2" } else { "v0" });
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    for key in ["host", "client", "stranger"] {
        tool(&[
            "ssh-keygen",
            "-q",
            "-t",
            "ed25519",
            "-N",
            "",
            "-C",
            key,
            "-f",
            &format!("{dir}/{key}"),
        ])?;
    }
    if is_root() {
        // Where sshd separates privileges; made by its service unit otherwise.
        let _ = fs::create_dir_all("/run/sshd");
    }
    let set_env =
        server_env().iter().map(|(name, value)| format!("\"{name}={value}\"")).collect::<Vec<_>>();
    let config = format!(
        "ListenAddress 127.0.0.1\nHostKey {dir}/host\nAuthorizedKeysFile {dir}/client.pub\nPidFile none\n\
         StrictModes no\nUsePAM no\nUseDNS no\nPermitRootLogin yes\nPubkeyAuthentication yes\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\nPrintLastLog no\n\
         MaxStartups 200:30:400\nLogLevel ERROR\nKexAlgorithms curve25519-sha256\nSetEnv {}\n{}",
        set_env.join(" "),
        if v2 { "AcceptEnv GIT_PROTOCOL\n" } else { "" }
    );
    fs::write(format!("{dir}/sshd_config"), config).unwrap();
    let start = |port: u16| {
        let (config, log) = (format!("{dir}/sshd_config"), format!("{dir}/log"));
        Guarded::start(&[&sshd, "-D", "-f", &config, "-p", &port.to_string(), "-E", &log])
    };
    let (server, port) = listening(start, "sshd")?;
    let host_key = fs::read_to_string(format!("{dir}/host.pub")).unwrap();
    fs::write(format!("{dir}/known_hosts"), format!("[127.0.0.1]:{port} {host_key}")).unwrap();
    let client = |key: &str| {
        let path = format!("{dir}/{key}.config");
        let config = format!(
            "IdentityFile {dir}/{key}\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {dir}/known_hosts\n\
             GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\nUpdateHostKeys no\nLogLevel ERROR\n"
        );
        fs::write(&path, config).unwrap();
        path
    };
    let (known, stranger) = (client("client"), client("stranger"));
    Some(Sshd { _server: server, port, client: known, stranger })
}

/// nginx and fcgiwrap in front of `git http-backend`.
///
/// The same repositories under several prefixes: `auth` (user `alice`, password [`PASSWORD`]), `open` (anybody, also for
/// pushes where the repository allows it), `old` (as `auth`, but the protocol header is lost, so v0), `reader` (as
/// `auth`, but 403 for anything about pushing), `frozen` (as `auth`, by a process that may not write), and `status/<code>`, which answers just that.
pub(crate) struct Web {
    _servers: Vec<Guarded>,
    /// TLS, with the certificate of a private authority.
    pub(crate) https: u16,
    /// Plain.
    pub(crate) http: u16,
    /// For `http.sslCAInfo`.
    pub(crate) authority: String,
}

/// The password that the web server wants to hear from `alice`. Tests look for it where it must not be.
pub(crate) const PASSWORD: &str = "s3cret-of-alice";

/// The web server.
pub(crate) fn web() -> Option<&'static Web> {
    static WEB: OnceLock<Option<Web>> = OnceLock::new();
    WEB.get_or_init(start_web).as_ref()
}

fn start_web() -> Option<Web> {
    let (Some(nginx), Some(fcgiwrap)) = (program("nginx"), program("fcgiwrap")) else {
        return skip("there is no nginx, or no fcgiwrap");
    };
    let backend = http_backend()?;
    let dir = format!("{}/web", root_name());
    fs::create_dir(&dir).unwrap();
    certificates(&dir)?;
    fs::write(format!("{dir}/passwords"), format!("alice:{{PLAIN}}{PASSWORD}\n")).unwrap();
    let mut servers = Vec::new();
    let mut wrap = |name: &str, before: &[&str]| {
        let socket = format!("{dir}/{name}.sock");
        let listen = format!("unix:{socket}");
        let mut server =
            Guarded::start(&[before, &[&fcgiwrap, "-f", "-c", "8", "-s", &listen]].concat());
        for _ in 0..500 {
            if server.has_ended() || Path::new(&socket).exists() {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        servers.push(server);
    };
    wrap("fcgi", &[]);
    if is_root() && program("setpriv").is_some() {
        // It may make its socket, and nothing else.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        wrap("frozen", &as_nobody()?);
    }
    let https = std::cell::Cell::new(0);
    let start = |http: u16| {
        https.set(free_port());
        let config = nginx_config(&dir, &backend, http, https.get());
        fs::write(format!("{dir}/nginx.conf"), config).unwrap();
        let (config, log) = (format!("{dir}/nginx.conf"), format!("{dir}/error.log"));
        Guarded::start(&[&nginx, "-e", &log, "-p", &dir, "-c", &config])
    };
    let (server, http) = listening(start, "nginx")?;
    servers.push(server);
    Some(Web {
        _servers: servers,
        https: https.get(),
        http,
        authority: format!("{dir}/authority.crt"),
    })
}

/// The backend of the git that the tests use.
fn http_backend() -> Option<String> {
    let output = Command::new("git").arg("--exec-path").output().unwrap();
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let path = format!("{folder}/git-http-backend");
    if Path::new(&path).is_file() { Some(path) } else { skip("this git has no http-backend") }
}

/// A private authority, and a leaf for the loopback address.
fn certificates(dir: &str) -> Option<()> {
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
    let file = |name: &str| format!("{dir}/{name}");
    let (ca_key, ca_crt) = (file("authority.key"), file("authority.crt"));
    let (key, request, crt) = (file("leaf.key"), file("leaf.csr"), file("leaf.crt"));
    let mut args = vec!["openssl", "req", "-x509", "-subj", "/CN=authority of a test"];
    args.extend(curve);
    args.extend(["-keyout", &ca_key, "-out", &ca_crt]);
    tool(&args)?;
    let mut args = vec!["openssl", "req", "-subj", "/CN=127.0.0.1"];
    args.extend(&curve[..5]);
    args.extend(["-keyout", &key, "-out", &request]);
    tool(&args)?;
    fs::write(file("leaf.ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
    let extension = file("leaf.ext");
    tool(&[
        "openssl",
        "x509",
        "-req",
        "-days",
        "2",
        "-in",
        &request,
        "-CA",
        &ca_crt,
        "-CAkey",
        &ca_key,
        "-CAcreateserial",
        "-extfile",
        &extension,
        "-out",
        &crt,
    ])
}

fn nginx_config(dir: &str, backend: &str, http: u16, https: u16) -> String {
    let environment = server_env()
        .iter()
        .filter(|(name, _)| name.starts_with("GIT_") || name == "PATH" || name == "HOME")
        .map(|(name, value)| format!("fastcgi_param {name} \"{value}\";\n"))
        .collect::<String>();
    let root = root_name();
    let git = |prefix: &str, more: &str| {
        let socket = if prefix == "frozen" { "frozen" } else { "fcgi" };
        format!(
            "location ~ ^/{prefix}(?<repo>/.*)$ {{\n{more}\n{environment}\
             fastcgi_param SCRIPT_FILENAME {backend};\nfastcgi_param GIT_PROJECT_ROOT {root};\n\
             fastcgi_param GIT_HTTP_EXPORT_ALL 1;\nfastcgi_param PATH_INFO $repo;\n\
             fastcgi_param QUERY_STRING $query_string;\nfastcgi_param REQUEST_METHOD $request_method;\n\
             fastcgi_param CONTENT_TYPE $content_type;\nfastcgi_param CONTENT_LENGTH $content_length;\n\
             fastcgi_param REMOTE_USER $remote_user;\nfastcgi_param REMOTE_ADDR $remote_addr;\n\
             fastcgi_pass unix:{dir}/{socket}.sock;\n}}\n"
        )
    };
    let auth = format!("auth_basic git;\nauth_basic_user_file {dir}/passwords;");
    let reader = format!(
        "{auth}\nif ($args ~ receive-pack) {{ return 403; }}\nif ($uri ~ receive-pack$) {{ return 403; }}"
    );
    let old = format!("{auth}\nfastcgi_param HTTP_GIT_PROTOCOL \"\";");
    let locations = [
        git("auth", &auth),
        git("open", ""),
        git("old", &old),
        git("reader", &reader),
        git("frozen", &auth),
    ]
    .concat();
    let status = [403, 429, 500, 503]
        .map(|code| format!("location /status/{code}/ {{ return {code}; }}\n"))
        .concat();
    let nobody =
        format!("location /status/401/ {{ auth_basic git; auth_basic_user_file {dir}/nobody; }}\n");
    fs::write(format!("{dir}/nobody"), "").unwrap();
    let user = if is_root() { "user root;\n" } else { "" };
    let temp = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {dir}/tmp-{name};\n"))
        .concat();
    format!(
        "{user}daemon off;\nworker_processes 1;\npid {dir}/nginx.pid;\nerror_log {dir}/error.log;\n\
         events {{ worker_connections 512; }}\nhttp {{\naccess_log {dir}/access.log;\n{temp}\
         client_max_body_size 0;\nserver {{\nlisten 127.0.0.1:{http};\n{locations}{status}{nobody}}}\n\
         server {{\nlisten 127.0.0.1:{https} ssl;\nssl_certificate {dir}/leaf.crt;\n\
         ssl_certificate_key {dir}/leaf.key;\n{locations}{status}{nobody}}}\n}}\n"
    )
}
