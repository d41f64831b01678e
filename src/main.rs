//! The program: reads its arguments, runs the command, prints what went wrong with its causes.

use std::process::ExitCode;

use clap::Parser as _;
use truetwin::cli::{self, Cli};

fn main() -> ExitCode {
    match cli::run(Cli::parse()) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("truetwin: {error:#}");
            cli::exit_of(&error).into()
        }
    }
}
