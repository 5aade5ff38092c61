//! One outcome becomes one exit status; nothing is decided here.

use std::process::ExitCode;

use clap::Parser;
use git_claim::{cli::Cli, commands};

fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => commands::run(&cli),
        Err(error) => commands::misused(&error),
    }
}
