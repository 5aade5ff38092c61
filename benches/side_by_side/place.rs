//! Where the commands run: a clone, its environment, and the way from there to a remote.

use std::{
    env, fmt, fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use crate::{
    next_number,
    proxy::{Proxy, Traffic},
    remotes::Remote,
    run,
    servers::{self, Daemon},
};

/// Added to each direction of a far remote.
pub(crate) const FAR: Duration = Duration::from_millis(50);

/// How a remote is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    Path,
    Git,
    Ssh,
    Https,
}

/// How a remote is reached, and whether it is far away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) via: Via,
    pub(crate) far: bool,
}

impl Way {
    pub(crate) const PATH: Self = Way { via: Via::Path, far: false };

    pub(crate) const fn near(via: Via) -> Self {
        Way { via, far: false }
    }

    pub(crate) const fn far(via: Via) -> Self {
        Way { via, far: true }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.via {
            Via::Path => "path",
            Via::Git => "git",
            Via::Ssh => "ssh",
            Via::Https => "https",
        })?;
        if self.far { f.write_str("+50ms") } else { Ok(()) }
    }
}

/// A clone, and all that a command in it may know. Gone with the value.
pub(crate) struct Place {
    dir: PathBuf,
    clone: PathBuf,
    env: Vec<(String, String)>,
    proxy: Option<Proxy>,
}

impl Place {
    /// A clone with one commit of `remote`, which is reached by `way`. Nothing, where there is no such server here.
    pub(crate) fn new(remote: &Remote, way: Way) -> Option<Self> {
        let dir = servers::root().join(format!("place-{}", next_number()));
        fs::create_dir_all(dir.join("tmp")).unwrap();
        let reached = reach(remote, way)?;
        let config = format!(
            "[user]\n\tname = Alice Example\n\temail = alice@example.com\n[gc]\n\tauto = 0\n[maintenance]\n\t\
             auto = false\n[receive]\n\tautogc = false\n{}",
            reached.config
        );
        fs::write(dir.join("gitconfig"), config).unwrap();
        let at = |name: &str| dir.join(name).to_str().unwrap().to_owned();
        let program = Path::new(env!("CARGO_BIN_EXE_git-claim")).parent().unwrap();
        let env = [
            ("PATH", format!("{}:{}", program.display(), env::var("PATH").unwrap())),
            ("HOME", dir.to_str().unwrap().to_owned()),
            ("TMPDIR", at("tmp")),
            ("GIT_CONFIG_GLOBAL", at("gitconfig")),
            ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("TZ", "UTC".to_owned()),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let place = Place { clone: dir.join("clone"), dir, env, proxy: reached.proxy };
        fs::create_dir(&place.clone).unwrap();
        place.git(&["init", "-q", "--template=", "--initial-branch=main"]);
        place.git(&["remote", "add", "origin", &reached.url]);
        place.git(&["commit", "-q", "--allow-empty", "-m", "work"]);
        Some(place)
    }

    /// A command here, to be run.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(program(words[0]));
        command.args(&words[1..]).current_dir(&self.clone);
        command.env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs git to a good end, for preparations.
    pub(crate) fn git(&self, args: &[&str]) {
        run::quietly(&mut self.command(&[&["git"], args].concat()));
    }

    /// Runs a command that must exit with `code`; gives its time.
    pub(crate) fn time(&self, words: &[&str], code: i32) -> Duration {
        self.go(words, "", code).0
    }

    /// The same, with input; gives its output too.
    pub(crate) fn go(&self, words: &[&str], input: &str, code: i32) -> (Duration, Output) {
        run::timed(&mut self.command(words), input.as_bytes(), code)
    }

    /// Forgets the claims that this clone holds, when the remote was cleared by the back door.
    pub(crate) fn forget(&self) {
        let _ = fs::remove_dir_all(self.clone.join(".git/claims"));
    }

    /// What crosses the wire while `work` goes on: by the proxy, or, for a path, by wrappers around git's two server
    /// programs, for which round trips make no sense.
    pub(crate) fn traffic<T>(&self, work: impl FnOnce() -> T) -> Traffic {
        if let Some(proxy) = &self.proxy {
            let _ = proxy.take();
            let _ = work();
            return proxy.take();
        }
        let log = self.recorded(work);
        let mut traffic = Traffic::default();
        for conversation in fs::read_dir(&log).unwrap() {
            let path = conversation.unwrap().path();
            traffic.connections += 1;
            traffic.up += fs::metadata(path.join("up")).unwrap().len();
            traffic.down += fs::metadata(path.join("down")).unwrap().len();
        }
        fs::remove_dir_all(log).unwrap();
        traffic
    }

    /// The bytes of the push that `work` makes over a path.
    pub(crate) fn pushed<T>(&self, work: impl FnOnce() -> T) -> Vec<u8> {
        let log = self.recorded(work);
        let conversations = fs::read_dir(&log).unwrap();
        let sent = conversations.map(|one| fs::read(one.unwrap().path().join("up")).unwrap());
        // Whatever was asked before has no pack.
        let pushed = sent.into_iter().find(|sent| sent.windows(4).any(|four| four == b"PACK"));
        fs::remove_dir_all(log).unwrap();
        pushed.unwrap()
    }

    /// A folder with a folder for each conversation of `work`, in which `up` and `down` are what was said.
    fn recorded<T>(&self, work: impl FnOnce() -> T) -> PathBuf {
        let log = self.dir.join("log");
        fs::create_dir(&log).unwrap();
        let programs = ["upload-pack", "receive-pack"];
        for program in programs {
            let wrapper = self.wrapper(program, &log);
            let key = format!("remote.origin.{}", program.replace('-', ""));
            self.git(&["config", &key, wrapper.to_str().unwrap()]);
        }
        let _ = work();
        for program in programs {
            let key = format!("remote.origin.{}", program.replace('-', ""));
            self.git(&["config", "--unset", &key]);
        }
        log
    }

    fn wrapper(&self, program: &str, log: &Path) -> PathBuf {
        // The shell keeps no end of the pipes, so that each side sees the other's end at once.
        let script = format!(
            "#!/bin/sh\nlog=$(mktemp -d {log}/XXXXXX)\nexec 3<&0\n\
             tee $log/up <&3 | git {program} \"$@\" 3<&- | tee $log/down 3<&- &\nexec <&- 3<&- >&-\nwait\n",
            log = log.display()
        );
        let path = self.dir.join(program);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// The full path of a program, so that both sides are started in the same way. For a bare name beside a `PATH` of its own
/// the standard library forks this whole process and has the child search, and the time of that would be theirs alone.
fn program(name: &str) -> PathBuf {
    if name == "git-claim" {
        return env!("CARGO_BIN_EXE_git-claim").into();
    }
    let path = env::var_os("PATH").unwrap();
    let mut files = env::split_paths(&path).map(|dir| dir.join(name));
    files.find(|file| file.is_file()).unwrap_or_else(|| panic!("no {name} on the PATH"))
}

/// An address, what a client's configuration must say to get in, and the relay on the way there.
struct Reached {
    url: String,
    config: String,
    proxy: Option<Proxy>,
}

fn reach(remote: &Remote, way: Way) -> Option<Reached> {
    let delay = if way.far { FAR } else { Duration::ZERO };
    let (path, below_root) = (remote.dir.display(), remote.below_root().display());
    let mut config = String::new();
    let (url, proxy) = match way.via {
        Via::Path => (path.to_string(), None),
        Via::Git => {
            let proxy = Proxy::start(servers::daemon(Daemon::Writable)?, delay);
            (format!("git://127.0.0.1:{}/{below_root}", proxy.port), Some(proxy))
        }
        Via::Ssh => {
            let sshd = servers::sshd(true)?;
            let proxy = Proxy::start(sshd.port, delay);
            config = format!(
                "[core]\n\tsshCommand = ssh -F {} -o HostKeyAlias=[127.0.0.1]:{}\n",
                sshd.client, sshd.port
            );
            (format!("ssh://127.0.0.1:{}{path}", proxy.port), Some(proxy))
        }
        Via::Https => {
            let web = servers::web()?;
            let proxy = Proxy::start(web.https, delay);
            config = format!(
                "[http]\n\tsslCAInfo = {}\n[credential \"https://127.0.0.1:{}\"]\n\thelper = \"!f() {{ test $1 = \
                 get && printf 'username=alice\\\\npassword={}\\\\n'; }}; f\"\n",
                web.authority,
                proxy.port,
                servers::PASSWORD
            );
            (format!("https://127.0.0.1:{}/auth/{below_root}", proxy.port), Some(proxy))
        }
    };
    Some(Reached { url, config, proxy })
}
