//! Which things a principal may read and write.

/// What may be done with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Right {
    /// It does not exist for this principal.
    None,
    /// It may be looked at.
    Read,
    /// It may be looked at and moved.
    Write,
}

/// Some things, as an owner names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All there are, also those that come later.
    All,
    /// Those of these ids, names, rooms and groups, in either language; what nothing is called selects nothing.
    Of(Vec<String>),
}

/// What a principal may read and write; what it may write it may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// What it may look at.
    pub read: Selection,
    /// What it may move.
    pub write: Selection,
}

impl Scope {
    /// All things, to be read and moved.
    pub fn everything() -> Self {
        Self { read: Selection::All, write: Selection::All }
    }

    /// No thing at all.
    pub fn nothing() -> Self {
        Self { read: Selection::Of(Vec::new()), write: Selection::Of(Vec::new()) }
    }

    /// Whether it is [`Scope::everything`].
    pub fn is_everything(&self) -> bool {
        self.write == Selection::All
    }
}
