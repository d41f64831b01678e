//! (dialect)
