//! Accounts that do whatever they may, in any order, beside a model of MQTT that looks at every subscription for every message: each
//! hears exactly what it must, with the right QoS and retain flag, in order. The seeds are fixed.

use std::collections::BTreeMap;

use truetwin::{
    broker::{Broker, Settings},
    topics::{is_filter, matches},
};

use crate::{
    accounts::{Got, account, read},
    support::*,
};

/// Numbers that look random and are the same each time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 0
    }

    /// A topic or filter of one to three levels below `a` or `b`.
    fn levels(&mut self, words: &[&str]) -> String {
        let mut text = self.of(&["a", "b"]).to_owned();
        for _ in 0..self.below(3) {
            text.push('/');
            text.push_str(self.of(words));
        }
        text
    }
}

/// How a client has subscribed to a filter.
#[derive(Clone, Copy)]
struct Options {
    qos: u8,
    no_local: bool,
    as_published: bool,
}

struct One {
    client: Client,
    id: &'static str,
    filters: BTreeMap<String, Options>,
}

impl One {
    /// All that came before the answer to a PINGREQ; QoS 1 is acknowledged.
    async fn heard(&mut self) -> Vec<Got> {
        self.client.send(&[0xC0, 0]).await;
        let mut heard = Vec::new();
        loop {
            let (first, body) = self.client.next().await.expect("it is not closed");
            match first >> 4 {
                3 => {
                    let got = read(first, &body, self.client.v5);
                    if got.id != 0 {
                        let [high, low] = got.id.to_be_bytes();
                        self.client.send(&[0x40, 2, high, low]).await;
                    }
                    heard.push(got);
                }
                13 => return heard,
                4 => {}
                other => panic!("a packet of type {other}"),
            }
        }
    }
}

struct World {
    broker: Broker,
    ones: Vec<One>,
    retained: BTreeMap<String, (String, u8)>,
    sent: usize,
}

impl World {
    async fn subscribes(&mut self, who: usize, random: &mut Random) {
        let filter = random.levels(&["a", "b", "", "+", "#"]);
        let one = &mut self.ones[who];
        let v5 = one.client.v5;
        let options = Options {
            qos: u8::try_from(random.below(2)).unwrap(),
            no_local: v5 && random.yes(),
            as_published: v5 && random.yes(),
        };
        let handling = if v5 { u8::try_from(random.below(3)).unwrap() } else { 0 };
        let bits = options.qos | u8::from(options.no_local) << 2 | u8::from(options.as_published) << 3 | handling << 4;
        one.client.send(&subscribe_with(3, &[&filter], bits, v5.then_some(&[]))).await;
        let (first, body) = one.client.next().await.expect("a SUBACK");
        assert_eq!(first, 0x90);
        if !is_filter(&filter) {
            assert_eq!(body.last(), Some(&if v5 { 0x8F } else { 0x80 }), "{filter}");
            return assert!(one.heard().await.is_empty());
        }
        assert_eq!(body.last(), Some(&options.qos), "{filter}");
        let new = one.filters.insert(filter.clone(), options).is_none();
        let heard: Vec<_> = one.heard().await.into_iter().map(|got| (got.first & 7, got.topic, got.payload)).collect();
        let wanted = handling == 0 || (handling == 1 && new);
        let kept = self.retained.iter().filter(|(topic, _)| wanted && matches(&filter, topic));
        let told = |(topic, (payload, qos)): (&String, &(String, u8))| {
            ((*qos).min(options.qos) << 1 | 1, topic.clone(), payload.clone())
        };
        assert_eq!(heard, kept.map(told).collect::<Vec<_>>(), "retained, for {filter}");
    }

    async fn unsubscribes(&mut self, who: usize, random: &mut Random) {
        let one = &mut self.ones[who];
        let known: Vec<String> = one.filters.keys().cloned().collect();
        let filter =
            if known.is_empty() || random.below(4) == 0 { "b/none" } else { &known[random.below(known.len())] };
        one.client.send(&unsubscribe(4, &[filter], one.client.v5)).await;
        let (first, body) = one.client.next().await.expect("an UNSUBACK");
        assert_eq!(first, 0xB0);
        let existed = one.filters.remove(filter).is_some();
        if one.client.v5 {
            assert_eq!(body.last(), Some(&if existed { 0 } else { 0x11 }), "{filter}");
        }
    }

    async fn publishes(&mut self, who: usize, random: &mut Random) {
        let topic = random.levels(&["a", "b", ""]);
        let (qos, retain) = (u8::try_from(random.below(2)).unwrap(), random.yes());
        self.sent += 1;
        let payload = if retain && random.below(4) == 0 { String::new() } else { self.sent.to_string() };
        let from = &mut self.ones[who];
        let properties = from.client.v5.then_some(&[][..]);
        from.client.send(&publish_with(&topic, qos << 1 | u8::from(retain), 5, payload.as_bytes(), properties)).await;
        // Its own answer, which may overtake what came of it, says that it was read; then all are asked.
        let mut heard = vec![Vec::new(); self.ones.len()];
        heard[who] = self.ones[who].heard().await;
        for (heard, one) in heard.iter_mut().zip(&mut self.ones) {
            heard.extend(one.heard().await);
        }
        match retain {
            true if payload.is_empty() => drop(self.retained.remove(&topic)),
            true => drop(self.retained.insert(topic.clone(), (payload.clone(), qos))),
            false => {}
        }
        for (at, (one, heard)) in self.ones.iter().zip(heard).enumerate() {
            let fitting = || {
                let fits = |(filter, options): &(&String, &Options)| {
                    matches(filter, &topic) && !(options.no_local && at == who)
                };
                one.filters.iter().filter(fits).map(|(_, options)| *options)
            };
            let flags = fitting()
                .map(|options| options.qos.min(qos))
                .max()
                .map(|best| best << 1 | u8::from(retain && fitting().any(|options| options.as_published)));
            let expected: Vec<_> = flags.map(|flags| (flags, topic.clone(), payload.clone())).into_iter().collect();
            let heard: Vec<_> = heard.into_iter().map(|got| (got.first & 7, got.topic, got.payload)).collect();
            assert_eq!(heard, expected, "{} of {who}'s publish on {topic}: {:?}", one.id, one.filters.keys());
        }
    }

    async fn comes_again(&mut self, who: usize) {
        let (id, v5) = (self.ones[who].id, self.ones[who].client.v5);
        let client = account(&self.broker, "ha", id, v5).await;
        assert_eq!(self.broker.account_connections("ha"), self.ones.len(), "the older one has gone");
        self.ones[who] = One { client, id, filters: BTreeMap::new() };
    }
}

#[tokio::test]
async fn whatever_accounts_do_each_hears_what_it_must_and_nothing_else() {
    for seed in [1, 7, 42] {
        let (broker, _hub, access) = start(Settings::default()).await;
        access.account("ha", &["#"], &["a/#", "b/#"]);
        let mut ones = Vec::new();
        for (id, v5) in [("old", false), ("new", true), ("newer", true)] {
            ones.push(One { client: account(&broker, "ha", id, v5).await, id, filters: BTreeMap::new() });
        }
        let mut world = World { broker, ones, retained: BTreeMap::new(), sent: 0 };
        let mut random = Random(seed);
        for _ in 0..400 {
            let who = random.below(3);
            match random.below(20) {
                0 => world.comes_again(who).await,
                1..5 => world.subscribes(who, &mut random).await,
                5..7 => world.unsubscribes(who, &mut random).await,
                _ => world.publishes(who, &mut random).await,
            }
        }
        let counters = world.broker.counters();
        let subscriptions: usize = world.ones.iter().map(|one| one.filters.len()).sum();
        assert_eq!(counters.subscriptions, subscriptions as u64, "none is left behind, seed {seed}");
        assert_eq!(counters.retained_messages, world.retained.len() as u64, "seed {seed}");
        assert!(world.sent > 100);
        world.broker.stop().await;
    }
}
