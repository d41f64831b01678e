//! What is said of topics that an account was refused: once each, with the command that grants them; and of clients that come without
//! TLS where it is required. Their programs often show nothing, and then the log is all that a person has.

use std::{
    collections::HashSet,
    fmt,
    hash::{DefaultHasher, Hash, Hasher as _},
    net::IpAddr,
    sync::Mutex,
};

use crate::{
    broker::core::lock,
    peer::Peer,
    topics::{Rights, has_invisible, shown},
};

/// How long the same is not said again: whoever connects anew each second fills no disk.
const AGAIN_AFTER_MS: u64 = 600_000;

/// Of how much something is said in that time, of all accounts or addresses together; more is only counted, like all of it
/// (`truetwin_door_foreign_topics_total`, `truetwin_door_subscriptions_refused_total`, `truetwin_door_refused_plain_total`).
const SAID_MAX: usize = 64;

/// Patterns that a line lists; the others are for `truetwin account list`.
const PATTERNS_SHOWN: usize = 8;

/// The longest topic that is shown, characters: a longer one is nobody's by name.
const TOPIC_CHARS_SHOWN: usize = 128;

/// What an account wanted to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::broker) enum Wanted<'a> {
    /// Subscribe with this filter.
    Read(&'a str),
    /// Publish to this topic, or have a will there.
    Write(&'a str),
}

/// What was said lately.
#[derive(Default)]
pub(in crate::broker) struct Refusals(Mutex<Said>);

#[derive(Default)]
struct Said {
    since_ms: u64,
    /// Hashes of what was refused to whom; two that are the same by chance cost a line.
    what: HashSet<u64>,
}

impl Refusals {
    /// Says it, if it was not said lately.
    pub(in crate::broker) fn tell(&self, now_ms: u64, account: &str, rights: &Rights, wanted: Wanted<'_>) {
        if self.is_new(now_ms, (account, wanted)) {
            tracing::warn!(account, "{}", Line { account, rights, wanted });
        }
    }

    /// Says that somebody came without TLS, if it was not said lately. `user`: as whom, if that is a name.
    pub(in crate::broker) fn tell_plain(&self, now_ms: u64, address: IpAddr, user: Option<&str>) {
        if self.is_new(now_ms, plain(address, user)) {
            tracing::warn!(
                %address,
                user,
                "refused: it came without TLS, and mqtt.tls is \"only\"; let it speak TLS and trust what `truetwin tls show --pem` prints, \
                 or set mqtt.tls = \"both\""
            );
        }
    }

    fn is_new(&self, now_ms: u64, what: impl Hash) -> bool {
        let mut hasher = DefaultHasher::new();
        what.hash(&mut hasher);
        let mut said = lock(&self.0);
        if now_ms.saturating_sub(said.since_ms) >= AGAIN_AFTER_MS {
            *said = Said { since_ms: now_ms, what: HashSet::new() };
        }
        said.what.len() < SAID_MAX && said.what.insert(hasher.finish())
    }
}

/// What is said once of clients without TLS: a name at an address, since behind one there may be several devices. Of IPv6 the network, of
/// whose addresses one host has as many as it likes.
fn plain(address: IpAddr, user: Option<&str>) -> (Peer, Option<&str>) {
    (address.into(), user)
}

/// One refusal in words.
struct Line<'a> {
    account: &'a str,
    rights: &'a Rights,
    wanted: Wanted<'a>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, flag, topic, patterns): (_, _, _, Vec<&str>) = match self.wanted {
            Wanted::Read(filter) => ("a subscription", "--read", filter, self.rights.read().collect()),
            Wanted::Write(topic) => ("a publish", "--write", topic, self.rights.write().collect()),
        };
        let short: String = topic.chars().take(TOPIC_CHARS_SHOWN).collect();
        let whole = short.len() == topic.len();
        write!(f, "{what} to {short:?}{} was refused; it may {} ", if whole { "" } else { "…" }, &flag[2..])?;
        match patterns.as_slice() {
            [] => f.write_str("nothing")?,
            patterns => {
                f.write_str(&shown(&patterns[..patterns.len().min(PATTERNS_SHOWN)].join(" ")))?;
                if patterns.len() > PATTERNS_SHOWN {
                    write!(f, " and {} more", patterns.len() - PATTERNS_SHOWN)?;
                }
            }
        }
        let granted = match self.wanted {
            Wanted::Read(filter) => self.rights.with(&[filter], &[]),
            Wanted::Write(topic) => self.rights.with(&[], &[topic]),
        };
        match granted {
            // Behind `=`, so that a topic which begins with a hyphen is no option.
            Ok(_) if whole && !has_invisible(topic) => {
                let quoted = topic.replace('\'', "'\\''");
                write!(f, "; grant it with: truetwin account allow {} {flag}='{quoted}'", self.account)
            }
            Ok(_) if has_invisible(topic) => write!(
                f,
                "; it has characters that cannot be seen, so it is not put into a command; a pattern around it is granted with: \
                 truetwin account allow {} {flag} PATTERN",
                self.account
            ),
            Ok(_) => {
                write!(f, "; grant a pattern around it with: truetwin account allow {} {flag} PATTERN", self.account)
            }
            Err(why) => write!(f, "; it cannot be granted: {why}"),
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test that fails there has said so")]
mod tests {
    use super::*;

    fn line(rights: &Rights, wanted: Wanted<'_>) -> String {
        Line { account: "me", rights, wanted }.to_string()
    }

    #[test]
    fn a_refusal_names_the_topic_what_is_allowed_and_the_command_that_grants_it() {
        let rights = Rights::new(&["home/#", "zigbee2mqtt/#"], &[]).unwrap();
        assert_eq!(
            line(&rights, Wanted::Read("#")),
            "a subscription to \"#\" was refused; it may read home/# zigbee2mqtt/#; grant it with: truetwin account allow me \
             --read='#'"
        );
        assert_eq!(
            line(&rights, Wanted::Write("it's/x")),
            "a publish to \"it's/x\" was refused; it may write nothing; grant it with: truetwin account allow me \
             --write='it'\\''s/x'"
        );
        assert!(line(&rights, Wanted::Write("-x/y")).ends_with("account allow me --write='-x/y'"), "it is no option");
        for (wanted, why) in [
            (Wanted::Write("truetwin/lamp/command"), "only the hub and each device itself may write"),
            (Wanted::Read("$SYS/#"), "are not offered"),
        ] {
            let said = line(&rights, wanted);
            assert!(said.contains(why) && !said.contains("account allow"), "{said}");
        }
        let long = "x".repeat(150);
        let said = line(&rights, Wanted::Read(&long));
        assert!(said.len() < 400 && said.ends_with("account allow me --read PATTERN"), "{said}");
        let said = line(&rights, Wanted::Read("a\n2026 forged"));
        assert!(!said.contains('\n'), "a topic writes no line of its own: {said}");
        for hidden in ["a/\u{202e}b", "a/\u{2066}b", "a/\u{200b}b", "a/\u{feff}b"] {
            let rights = Rights::new(&[hidden], &[]).unwrap();
            for wanted in [Wanted::Read("other"), Wanted::Read(hidden), Wanted::Write(hidden)] {
                let said = line(&rights, wanted);
                assert!(
                    !has_invisible(&said) && said.contains("\\u{"),
                    "nothing is written that cannot be seen: {said}"
                );
            }
            assert!(line(&rights, Wanted::Write(hidden)).contains("not put into a command"));
        }
        let many: Vec<String> = (0..16).map(|at| format!("t{at}/#")).collect();
        let said = line(&Rights::new(&many, &[]).unwrap(), Wanted::Read("other"));
        assert!(said.contains("and 8 more") && said.contains("it cannot be granted: 17 patterns"), "{said}");
    }

    #[test]
    fn one_that_comes_without_tls_again_and_again_is_told_of_once_in_a_while() {
        let refusals = Refusals::default();
        let new =
            |now_ms, address: &str, user| refusals.is_new(now_ms, plain(address.parse::<IpAddr>().unwrap(), user));
        assert!(new(1, "10.0.0.5", Some("lamp")) && !new(2, "10.0.0.5", Some("lamp")));
        assert!(new(3, "10.0.0.5", Some("fan")) && new(3, "10.0.0.6", None));
        assert!(new(AGAIN_AFTER_MS, "10.0.0.5", Some("lamp")));
    }

    #[test]
    fn the_same_is_said_once_in_a_while_and_all_together_is_bounded() {
        let refusals = Refusals::default();
        let new = |now_ms, account: &str, topic: &str| refusals.is_new(now_ms, (account, Wanted::Read(topic)));
        assert!(new(5, "me", "a") && !new(6, "me", "a"));
        assert!(new(7, "you", "a") && new(7, "me", "b"));
        assert!(refusals.is_new(7, ("me", Wanted::Write("a"))));
        let said = (0..10_000).filter(|at| new(8, "me", &format!("t{at}"))).count();
        assert_eq!(said, SAID_MAX - 4);
        assert!(new(AGAIN_AFTER_MS, "me", "a"));
    }
}
