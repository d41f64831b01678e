//! The program: reads its arguments, runs the command, prints what went wrong with its causes.

use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;
use truetwin::cli::{self, Cli};

/// A call allocates some hundred small pieces, and connections come and go for months: glibc's allocator took a sixth of the
/// time of a call and kept a third more memory after a thousand callers (`make bench`).
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match cli::run(Cli::parse()) {
        Ok(exit) => exit.into(),
        Err(error) => {
            eprintln!("truetwin: {}", cli::complete(&format!("{error:#}")));
            cli::exit_of(&error).into()
        }
    }
}
