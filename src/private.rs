//! Files that are secrets: opened only where they are their owner's alone. The one place that says what that means, for all that
//! the hub keeps itself and all that its owner names. Knows nothing of what is in them.

use std::{
    fs::{File, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

/// The rights of all but the owner: with any of them a secret is none.
const OTHERS: u32 = 0o077;

/// Why a secret cannot be had. Who reports it names the file, and `chmod 600`, which mends the second.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// It cannot be opened.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Others may read or change it.
    #[error("others may read it (mode {mode:04o})")]
    Exposed {
        /// Its mode, of which only the rights are told.
        mode: u32,
    },
}

/// Opens a file that is to be its owner's alone. The rights are those of the file that is open, not of the one that may have
/// taken its place.
///
/// # Errors
/// [`Refused`].
pub fn open(path: &Path) -> Result<File, Refused> {
    let file = File::open(path)?;
    match exposed(&file.metadata()?.permissions()) {
        Some(mode) => Err(Refused::Exposed { mode }),
        None => Ok(file),
    }
}

/// The mode of a file of which anybody but its owner has any right.
pub fn exposed(permissions: &Permissions) -> Option<u32> {
    let mode = permissions.mode() & 0o7777;
    (mode & OTHERS != 0).then_some(mode)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_any_right_for_anybody_else_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "x").unwrap();
        for mode in 0..0o1000 {
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let permissions = file.metadata().unwrap().permissions();
            assert_eq!(exposed(&permissions), (mode & 0o077 != 0).then_some(mode), "{mode:04o}");
        }
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(open(&file), Err(Refused::Exposed { mode: 0o644 })));
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        assert!(open(&file).is_ok());
        assert!(matches!(open(&folder.path().join("none")), Err(Refused::Io(_))));
    }
}
