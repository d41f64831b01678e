//! Whether sockets to the outside may have been left open by a run that ended without closing them: a power cut, a kill.

use super::{DataFolder, Error, SMALL_BYTES_MAX, SOCKETS, file};

impl DataFolder {
    /// Notes that sockets may be open from now on. `true`: so had an earlier run, and it never closed them; whoever is at
    /// the other end may believe they are still there.
    ///
    /// # Errors
    /// [`Error::Io`] from the disk.
    pub fn sockets_open(&self) -> Result<bool, Error> {
        let before = file::read(&self.path().join(SOCKETS), SMALL_BYTES_MAX)?;
        file::replace(self.path(), SOCKETS, b"open\n")?;
        Ok(before.is_some())
    }

    /// Notes that all of them are closed, and that the other ends know it.
    ///
    /// # Errors
    /// [`Error::Io`] from the disk.
    pub fn sockets_closed(&self) -> Result<(), Error> {
        file::remove(self.path(), SOCKETS)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_never_closed_its_sockets_is_known_to_the_next() {
        let path = tempfile::tempdir().unwrap();
        let run = || DataFolder::open(path.path()).unwrap();
        assert!(!run().sockets_open().unwrap());
        // It was killed.
        let second = run();
        assert!(second.sockets_open().unwrap());
        second.sockets_closed().unwrap();
        drop(second);
        assert!(!run().sockets_open().unwrap());
    }
}
