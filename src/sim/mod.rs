//! (sim)
