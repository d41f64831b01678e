//! Where the data folder is.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::Error;

/// The folder to use, as an absolute path: the flag, else `TRUETWIN_DATA`, else `$XDG_DATA_HOME/truetwin`, else
/// `~/.local/share/truetwin`.
///
/// # Errors
/// [`Error::NoPlace`] if none of them is set; [`Error::Io`] if there is no current folder to make it absolute with.
pub fn folder(flag: Option<&Path>) -> Result<PathBuf, Error> {
    let path = choose(flag, |name| std::env::var_os(name)).ok_or(Error::NoPlace)?;
    std::path::absolute(&path).map_err(|source| Error::Io { doing: "make absolute the path", path, source })
}

fn choose(flag: Option<&Path>, env: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG specification: a relative path in XDG_DATA_HOME is invalid and is to be ignored.
    let xdg = || set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    flag.map(Path::to_owned)
        .or_else(|| set("TRUETWIN_DATA"))
        .or_else(|| xdg().map(|path| path.join("truetwin")))
        .or_else(|| set("HOME").map(|path| path.join(".local/share/truetwin")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(flag: Option<&str>, env: &[(&str, &str)]) -> Option<PathBuf> {
        choose(flag.map(Path::new), |name| env.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn the_flag_goes_before_the_environment_and_that_before_the_home() {
        let all = [("TRUETWIN_DATA", "/d"), ("XDG_DATA_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(chosen(Some("f"), &all), Some("f".into()));
        assert_eq!(chosen(None, &all), Some("/d".into()));
        assert_eq!(chosen(None, &all[1..]), Some("/x/truetwin".into()));
        assert_eq!(chosen(None, &all[2..]), Some("/h/.local/share/truetwin".into()));
        assert_eq!(chosen(None, &[("TRUETWIN_DATA", ""), ("XDG_DATA_HOME", "rel")]), None);
    }
}
