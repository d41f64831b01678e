//! Whatever a client sends, it is answered once and in order, or ended with a code.
#![allow(missing_docs, clippy::unwrap_used)]

use truetwin_fuzz::{
    corpus,
    random::{Source, seeds},
    session,
};

#[test]
fn a_client_that_sends_anything_is_answered_once_in_order_or_ended_with_a_code() {
    for (name, input) in corpus::of("session") {
        println!("{name}");
        session::check(&mut Source::Bytes(&input));
    }
    for seed in seeds("session", 3_000) {
        session::check(&mut Source::seeded(seed));
    }
}
