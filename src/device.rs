//! (device)
