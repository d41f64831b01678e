//! A target: the codec says of a packet what other people's codecs say of it, but where [`decided`] says why not.
//!
//! What is no difference: to refuse a packet before it is whole, and the words of a refusal.

use std::fmt;

use truetwin::broker::MqttVersion;

use crate::{
    decided,
    facts::{Verdict, ours},
    oracles::Oracle,
};

/// Somebody says something else than we do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The packet's version.
    pub version: &'static str,
    /// The packet's type, a number of four bits.
    pub packet: u8,
    /// `reads`, `waits`, or the words of our refusal; only `refuses` where they panic.
    pub ours: String,
    /// `reads`, `waits`, `panics`; `refuses: ` and the name of their error; `reads otherwise: ` and what.
    pub theirs: String,
    /// Who.
    pub oracle: Oracle,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, packet, ours, theirs, oracle } = self;
        write!(f, "{version} {packet} | {ours} | {} {theirs}", oracle.name())
    }
}

/// All that others say otherwise of the first packet in these bytes.
pub fn of(bytes: &[u8], version: MqttVersion) -> Vec<Difference> {
    let Some(first) = bytes.first() else { return Vec::new() };
    let (version, our_verdict) = ours(bytes, version);
    let mut found = Vec::new();
    for oracle in Oracle::ALL {
        let their_verdict = oracle.judge(bytes, version);
        let mut say = |ours: &str, theirs: String| {
            let (version, packet) = (version.as_str(), first >> 4);
            found.push(Difference { version, packet, ours: ours.to_owned(), theirs, oracle });
        };
        let our_word = match &our_verdict {
            Verdict::Waits => "waits",
            Verdict::Reads(_) => "reads",
            Verdict::Refuses(words) => words,
            Verdict::Panics => unreachable!("a panic of ours is not caught"),
        };
        match (&our_verdict, &their_verdict) {
            (Verdict::Refuses(_), Verdict::Panics) => say("refuses", "panics".to_owned()), // whatever we refuse it for
            (_, Verdict::Panics) => say(our_word, "panics".to_owned()),
            (Verdict::Reads(ours), Verdict::Reads(theirs)) => {
                for (name, _, _) in ours.unlike(theirs) {
                    say("reads", format!("reads otherwise: {name}"));
                }
            }
            (Verdict::Reads(_), Verdict::Waits) => say(our_word, "waits".to_owned()),
            (Verdict::Reads(_), Verdict::Refuses(words)) => {
                let name: String = words.chars().take_while(char::is_ascii_alphanumeric).collect();
                say(our_word, format!("refuses: {name}"));
            }
            (_, Verdict::Reads(_)) => say(our_word, "reads".to_owned()),
            (Verdict::Waits | Verdict::Refuses(_) | Verdict::Panics, Verdict::Waits | Verdict::Refuses(_)) => {}
        }
    }
    found
}

/// Those that nobody has decided.
pub fn undecided(bytes: &[u8], version: MqttVersion) -> Vec<Difference> {
    of(bytes, version).into_iter().filter(|each| decided::find(each).is_none()).collect()
}

/// Holds the codec beside the others.
///
/// # Panics
/// If one of them says otherwise, and that was not decided.
pub fn check(bytes: &[u8], version: MqttVersion) {
    let found = undecided(bytes, version);
    if found.is_empty() {
        return;
    }
    let (version, our_verdict) = ours(bytes, version);
    let mut words = format!("{} undecided for {}: {our_verdict:?}", found.len(), hex(bytes));
    for each in found {
        words += &format!("\n{each}: {:?}", each.oracle.judge(bytes, version));
    }
    panic!("{words}");
}

/// Bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from such a text.
///
/// # Panics
/// If it is none.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.bytes().map(|digit| u8::try_from(char::from(digit).to_digit(16).unwrap()).unwrap()).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
