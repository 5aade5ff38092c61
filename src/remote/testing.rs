//! A clone with a configuration, and the choice made in it, for the tests of these modules.

use gix::bstr::BString;

use super::{Destination, RemoteError, Way};
use crate::{
    checkout::sandbox::Sandbox,
    settings::{Asked, Settings},
};

/// A repository in `work` with this configuration added to its own.
pub(super) fn configured(text: &str) -> Sandbox {
    let sandbox = Sandbox::with_repository();
    let config = std::fs::read_to_string(sandbox.path("work/.git/config")).unwrap();
    sandbox.write("work/.git/config", config + text);
    sandbox
}

pub(super) fn choose_in(
    sandbox: &Sandbox,
    below: &str,
    typed: Option<&str>,
) -> Result<Destination, RemoteError> {
    let checkout = sandbox.open(below).unwrap();
    let asked = Asked { remote: typed.map(str::to_owned), ..Asked::default() };
    let settings = Settings::gather(asked, &checkout).unwrap();
    Destination::choose(&settings, &checkout, &sandbox.path(below))
}

pub(super) fn choose(sandbox: &Sandbox, typed: Option<&str>) -> Result<Destination, RemoteError> {
    choose_in(sandbox, "work", typed)
}

pub(super) fn choose_url(url: &str) -> Result<Destination, RemoteError> {
    choose(&configured(""), Some(url))
}

/// Where it is on this machine.
pub(super) fn path(destination: &Destination) -> BString {
    match &destination.way {
        Way::Local(path) => path.clone(),
        other => panic!("{other:?} is no path"),
    }
}
