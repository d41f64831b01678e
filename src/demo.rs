//! (demo)
