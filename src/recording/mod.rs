//! Recordings: what happened to each twin and what it decided, line by line, and stepping them through the same twin again.
//!
//! A twin is pure: the same inputs at the same times give the same decisions, on any machine and on any day. So a file of inputs is
//! a bug report that can be lived again, and one with the decisions beside them shows where another version decides otherwise.
//!
//! | file | what |
//! |---|---|
//! | [`form`] | the lines, written and read back |
//! | [`mod@replay`] | stepped through the twin, and compared |
//! | [`words`] | inputs and decisions for people |
//!
//! Pure: who writes the file beside a running hub is [`crate::recorder`]'s affair. The simulator writes the same form.

pub mod form;
pub mod replay;
pub mod words;
