//! (metrics)
