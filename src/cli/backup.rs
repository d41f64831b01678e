//! `truetwin backup` and `truetwin restore`.

use std::path::Path;

use anyhow::Context as _;

use super::{Exit, Failure, say, tell, unexpected};
use crate::{
    backup,
    control::{self, Request, Response},
};

/// `truetwin backup FILE`: by the running hub, or, if none runs, of the folder itself.
#[expect(clippy::wildcard_enum_match_arm, reason = "an answer to another question is one mistake, whichever it is")]
pub(super) fn make(file: &Path, folder: &Path) -> anyhow::Result<Exit> {
    // The hub has another working directory.
    let to = std::path::absolute(file).with_context(|| format!("cannot tell where {} is", file.display()))?;
    match control::ask(folder, &Request::Backup { to: to.clone() }) {
        Err(control::Error::NoHub { .. }) if folder.exists() => backup::of_folder(folder, &to)?,
        Err(control::Error::NoHub { .. }) => {
            let message = format!(
                "there is no data folder {}; `--data` names another one, `truetwin serve` makes it",
                folder.display()
            );
            return Err(Failure { exit: Exit::Usage, message }.into());
        }
        answered => match answered? {
            Response::BackedUp => {}
            other => return unexpected(&other),
        },
    }
    say(&format!(
        "{} holds all that this hub knows, passwords' hashes and access points included: keep it as you keep keys\n",
        to.display()
    ))
}

/// `truetwin restore FILE`: only where no hub runs.
pub(super) fn restore(file: &Path, folder: &Path) -> anyhow::Result<Exit> {
    if backup::restore(folder, file)? == backup::Checked::WithoutChecksum {
        eprintln!(
            "truetwin: note: {} has no checksum, it is a backup of an older version: that none of its values was changed cannot be told; \
             make a new one",
            file.display()
        );
    }
    tell(&format!(
        "{} is what {} holds; what was there before, if anything was, has .before-restore behind its name. Begin with: truetwin serve --data {}\n",
        folder.display(),
        file.display(),
        folder.display()
    ))
}
