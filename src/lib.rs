//! truetwin: a home-lab hub whose tool calls say *done* only when it is done.
//!
//! Each device is an actor that holds a digital twin: what was asked for beside what the device says it has. A tool call
//! becomes an operation of that twin and is answered only once fresh, attributed, reported state has converged with the
//! wish, or when a limit passes; a failure names the stage at which it stopped.
//!
//! # The way of a tool call
//!
//! | step | file | what happens |
//! |---|---|---|
//! | 1 | [`mcp`], [`endpoint`] | `tools/call`: a task of its own, a panic is an answer, the caller is known from the session |
//! | 2 | [`mcp::tools`] | arguments are checked; a mistake is a refusal that names what is allowed |
//! | 3 | [`fleet`] | device id to actor; a vanished caller is told to the actor |
//! | 4 | [`device`] | the actor keeps the reply port, feeds the twin, carries out what it decides |
//! | 5 | [`twin`] | the pure state machine: admission, stages, convergence, deadlines |
//! | 6 | [`dialect`] | commands to bytes |
//! | 7 | [`broker`] | bus, door, the device's socket; *written* comes back to the twin |
//! |   | | the device receives, drives, reads back, reports ([`sim`] is one) |
//! | 8 | [`broker`] | door, bus |
//! | 9 | [`ingress`] | bytes to reports, to the device's actor; then the device's acknowledgement goes out |
//! | 10 | [`twin`], [`device`] | converged, or asked once more, or not; the port is answered |
//! | 11 | [`answer`] | outcome to result, sentence and structured content |
//! | 12 | [`audit`] | who asked for what, what it was taken for, what was said: one line in a file |
//!
//! # What each part must not know
//!
//! The twin knows no clock, no runtime, no JSON: so what reaches it can be recorded ([`recorder`]) and lived again by `truetwin
//! replay` ([`recording`]), also what a seed of the simulator did. The broker knows nothing of devices but names, and of service accounts
//! what [`topics`] they may read and write. Only [`answer`] has
//! sentences; only [`metrics`] names metrics; only `broker::router` names rumqttd; only [`serve`] knows all parts. No
//! module uses one above it; `tests/layers.rs` holds the table.
//!
//! # To add …
//!
//! | to add | touch | held by |
//! |---|---|---|
//! | a setting | `config/schema.rs` | `tests/config.rs` |
//! | an input, a decision, or a field of one | [`twin::input`], `recording/form`, [`recording::words`] | the compiler, the round trip in `recording/form/tests.rs` |
//! | a metric | [`metrics`], a panel in `grafana/` | `tests/metrics.rs`, `tests/clients/test_grafana.py` |
//! | an outcome, refusal, reason | [`twin::words`], `twin/semantics.md`, [`answer`] | `tests/catalogue.rs` |
//! | a rule of the twin | `twin/semantics.md`, [`twin`] | `tests/twin_rules.rs`, `tests/twin_histories.rs` |
//! | an invariant, a fault, a planted mistake | `tests/proof`, [`twin::planted`] | `make sim` |
//! | a tool | [`mcp::tools`], its text in both languages | `tests/catalogue.rs`, `tests/utterances.rs` |
//! | a fact of a device's resource | `answer/twin.rs`, [`twin::view`] | `tests/resources.rs` |
//! | what a client may do in MCP | `mcp/handler.rs`, `mcp/bridge` | `tests/clients`, `tests/clients/conformance.toml` |
//! | what an access point does or wants | [`endpoint`], a fake of it in `tests/endpoints/` | `tests/endpoints.rs` |
//! | a way to call things | [`names`] | `tests/utterances.rs` |
//! | what the door reads, sends or refuses | `broker/door/codec`, `broker/protocol.md` | `tests/fuzz`, `make fuzz` |
//! | what a service account may or is told | [`topics`], `broker/relay`, `broker/door/account.rs` | `tests/door/accounts.rs`, `tests/clients/test_accounts.py` |
//! | a field of the audit | `audit/record.rs`, its table in [`audit`], `serve/audited.rs` | [`audit`]'s tests, `tests/clients/test_audit.py` |
//! | a field on the wire | `firmware/wire`, its vectors, `protocol.md` | `firmware/wire/tests` |
//! | a fault of the simulator | `sim/fault.rs`, a row of the fault table | `tests/sim_faults.rs`, `tests/faults.rs`, `tests/twin_rules/faults.rs` |
//! | a kind of the simulator | `sim/kind.rs`, `sim/plant.rs` | `tests/sim_kinds.rs` |

pub mod answer;
pub mod audit;
pub mod authz;
pub mod backup;
pub mod broker;
pub mod cli;
pub mod config;
pub mod control;
pub mod data;
pub mod demo;
pub mod device;
pub mod dialect;
pub mod endpoint;
pub mod fleet;
pub mod ingress;
pub mod journal;
pub mod mcp;
pub mod metrics;
pub mod names;
pub mod peer;
pub mod private;
pub mod property;
pub mod random;
pub mod recorder;
pub mod recording;
pub mod serve;
pub mod sim;
pub mod topics;
pub mod twin;
