//! The inputs that are kept in the repository: what fuzzing found worth keeping.

use std::{fs, path::PathBuf};

/// The inputs of a target, in the order of their names.
///
/// # Panics
/// If they cannot be read.
pub fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut inputs: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()))
        .collect();
    inputs.sort();
    inputs
}
