//! truetwin: a home-lab hub whose tool calls say done only when it is done.
pub mod answer;
pub mod broker;
pub mod cli;
pub mod config;
pub mod control;
pub mod data;
pub mod device;
pub mod dialect;
pub mod fleet;
pub mod ingress;
pub mod mcp;
pub mod metrics;
pub mod names;
pub mod property;
pub mod serve;
pub mod sim;
pub mod twin;
