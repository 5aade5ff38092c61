//! One outcome becomes one exit status; nothing is decided here.

use std::process::ExitCode;

use clap::Parser;
use git_claim::{cli::Cli, commands};

fn main() -> ExitCode {
    commands::run(&Cli::parse())
}
