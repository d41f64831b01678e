//! The codec keeps its promises, and says of packets what other people's codecs say.
#![allow(missing_docs, clippy::unwrap_used)]

use std::collections::BTreeMap;

use truetwin::broker::MqttVersion::{self, V3_1_1, V5};
use truetwin_fuzz::{
    codec, corpus,
    decided::{self, DECIDED, Decided},
    differences,
    packets::{DEVICE, connect, later, mutate},
    random::{Source, seeds},
};

/// A packet of a seed, most often mutated.
fn made(seed: u64) -> (MqttVersion, Vec<u8>) {
    let mut source = Source::seeded(seed);
    let version = source.one(&[V3_1_1, V5, V5]);
    let mut bytes = if source.once_in(4) { connect(&mut source, version, DEVICE) } else { later(&mut source, version) };
    if !source.once_in(3) {
        mutate(&mut bytes, &mut source);
    }
    (version, bytes)
}

#[test]
fn the_corpus_and_random_packets_are_read_or_refused_as_promised() {
    for (name, input) in corpus::of("codec") {
        let Some((version, bytes)) = codec::split(&input) else { continue };
        println!("{name}");
        codec::check(bytes, version);
    }
    for seed in seeds("codec", 100_000) {
        let (version, bytes) = made(seed);
        codec::check(&bytes, version);
    }
}

#[test]
fn others_read_the_corpus_and_random_packets_as_we_do_or_it_is_decided_why_not() {
    let mut found = BTreeMap::new();
    let mut look = |version, bytes: &[u8]| {
        for difference in differences::undecided(bytes, version) {
            let shortest: &mut Vec<u8> = found.entry(difference).or_insert_with(|| bytes.to_vec());
            if bytes.len() < shortest.len() {
                *shortest = bytes.to_vec();
            }
        }
    };
    for (_, input) in corpus::of("codec") {
        if let Some((version, bytes)) = codec::split(&input) {
            look(version, bytes);
        }
    }
    for seed in seeds("differences", 50_000) {
        let (version, bytes) = made(seed);
        look(version, &bytes);
    }
    for (difference, bytes) in &found {
        println!("{difference} | {}", differences::hex(bytes));
    }
    assert!(found.is_empty(), "{} kinds of differences that nobody has decided, see above", found.len());
}

#[test]
fn each_decision_is_about_differences_that_are_there() {
    for Decided { ours, theirs, who, because, examples } in DECIDED {
        let mut seen = Vec::new();
        for example in *examples {
            let (version, bytes) = decided::example(example);
            let found = differences::of(&bytes, version);
            let here: Vec<_> =
                found.iter().filter(|each| (&each.ours[..], &each.theirs[..]) == (ours, theirs)).collect();
            assert!(here.iter().any(|each| who.contains(&each.oracle)), "{ours} | {theirs}: {example}: {found:?}");
            seen.extend(here.iter().map(|each| each.oracle));
            let undecided: Vec<_> = found.iter().filter(|each| decided::find(each).is_none()).collect();
            assert!(undecided.is_empty(), "{example}: {undecided:?}");
        }
        assert!(who.iter().all(|oracle| seen.contains(oracle)), "{ours} | {theirs}: not all of {who:?}");
        assert!(!because.is_empty());
    }
}
