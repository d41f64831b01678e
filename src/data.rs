//! (data)
