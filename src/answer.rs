//! (answer)
