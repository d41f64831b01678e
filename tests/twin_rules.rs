//! The rules of `src/twin/semantics.md` that one twin keeps, each held by a test with its number, on a bench without
//! runtime or sleep. What happens in random order is in `tests/twin_histories.rs`.

#[path = "twin_rules/actions.rs"]
mod actions;
#[path = "twin_rules/answers.rs"]
mod answers;
#[path = "twin_rules/bench.rs"]
mod bench;
#[path = "twin_rules/callers.rs"]
mod callers;
#[path = "twin_rules/convergence.rs"]
mod convergence;
#[path = "twin_rules/descriptions.rs"]
mod descriptions;
#[path = "twin_rules/evidence.rs"]
mod evidence;
#[path = "twin_rules/faults.rs"]
mod faults;
#[path = "twin_rules/hands.rs"]
mod hands;
#[path = "twin_rules/held.rs"]
mod held;
#[path = "twin_rules/ledger.rs"]
mod ledger;
#[path = "twin_rules/owed.rs"]
mod owed;
#[path = "twin_rules/relative.rs"]
mod relative;
#[path = "twin_rules/restarts.rs"]
mod restarts;
#[path = "twin_rules/sessions.rs"]
mod sessions;
#[path = "twin_rules/state.rs"]
mod state;
#[path = "twin_rules/together.rs"]
mod together;
#[path = "twin_rules/turns.rs"]
mod turns;
#[path = "twin_rules/verify.rs"]
mod verify;
