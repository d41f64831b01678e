//! Why a connection, or the try to make one, came to its end: a closed set of words, and what the other side said.

use super::Profile;

/// Longest text of a close frame that is kept, characters.
const SAID_CHARS_MAX: usize = 64;

/// A word so long may be a token: it is not kept.
const WORD_BYTES_MAX: usize = 20;

/// What a relay says when another program has come with the same token.
const REPLACED: &str = "新连接替换";

/// Declares the words with their texts and the list of all.
macro_rules! words {
    ($($(#[$doc:meta])* $word:ident = $text:literal, $said:literal;)+) => {
        /// Why it ended.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum EndWord {
            $($(#[$doc])* $word,)+
        }

        impl EndWord {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$word,)+];

            /// The word in metrics and logs.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$word => $text,)+
                }
            }

            /// What an owner is told.
            pub fn told(self) -> &'static str {
                match self {
                    $(Self::$word => $said,)+
                }
            }
        }
    };
}

words! {
    /// The hub stopped, or the endpoint was removed.
    Stopped = "stopped", "closed by this hub";
    /// The tools had changed: access points read them at the beginning only.
    ToolsChanged = "tools_changed", "closed by this hub to tell its changed tools";
    /// The owner asked for a new connection.
    Restarted = "restarted", "closed by this hub to dial anew";
    /// Nothing was heard any more, or nothing read.
    Silent = "silent", "the line went silent";
    /// It ended without a close frame.
    Dropped = "dropped", "the line was dropped";
    /// A close frame with no meaning of its own.
    Closed = "closed", "closed by the access point";
    /// Close code 4004: something was not answered in time, or its own backend is in trouble.
    Unanswered = "unanswered", "closed by the access point: trouble there, or an answer came late (4004)";
    /// Close code 1008: the token is no good, and dialling again is pointless.
    TokenRefused = "token_refused", "token refused; get a new address from the console";
    /// A relay threw this one out for another.
    Replaced = "replaced", "another program uses this token; a relay takes one at a time";
    /// No connection: name, network, nobody listening, or too slow.
    Unreachable = "unreachable", "cannot be reached";
    /// No encrypted connection.
    Tls = "tls", "no encrypted connection: certificate or clock";
    /// Something answered over HTTP that is no access point.
    NotThere = "not_there", "no access point at this address";
    /// HTTP 401 or 403 instead of a WebSocket.
    HttpRefused = "http_refused", "refused before anything was said (HTTP 401 or 403); the token may be no good";
    /// Something that is no WebSocket, or a message that is too large.
    Garbled = "garbled", "what came over the line made no sense";
    /// A mistake in the hub.
    Failed = "failed", "this hub failed over it";
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Why.
    pub word: EndWord,
    /// The close code, where there was a close frame; the HTTP status where there was no upgrade.
    pub code: Option<u16>,
    /// What the other side said, shortened, without what may be a token.
    pub said: String,
    /// Whether the other side may believe that the line is still there.
    pub is_unclean: bool,
}

impl End {
    /// Without a code or a text.
    pub(super) fn new(word: EndWord) -> Self {
        Self { word, code: None, said: String::new(), is_unclean: word == EndWord::Silent }
    }

    /// With what the other side said.
    pub(super) fn with(word: EndWord, code: Option<u16>, said: &str) -> Self {
        Self { code, said: harmless(said), ..Self::new(word) }
    }

    /// By a close frame.
    pub(super) fn closed(code: u16, said: &str, profile: Profile) -> Self {
        let word = match (code, profile) {
            (4004, _) => EndWord::Unanswered,
            (1008, _) => EndWord::TokenRefused,
            (1000, Profile::Relay) if said.contains(REPLACED) => EndWord::Replaced,
            _ => EndWord::Closed,
        };
        Self::with(word, Some(code), said)
    }
}

/// A text of the other side for a list and a log. Relays are known to say the token in an error.
fn harmless(said: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let shown = |word: &str| {
        let plain = word.chars().filter(char::is_ascii_graphic).count();
        if plain > WORD_BYTES_MAX { "…".to_owned() } else { word.to_owned() }
    };
    let said: String = said.chars().map(clean).collect();
    let words: Vec<String> = said.split_whitespace().map(shown).collect();
    words.join(" ").chars().take(SAID_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_codes_are_read_as_the_two_kinds_mean_them() {
        let word = |code, said, profile| End::closed(code, said, profile).word;
        assert_eq!(word(4004, "Internal server error", Profile::Official), EndWord::Unanswered);
        assert_eq!(word(1008, "无对应agentId", Profile::Relay), EndWord::TokenRefused);
        assert_eq!(word(1000, "新连接替换", Profile::Relay), EndWord::Replaced);
        assert_eq!(word(1000, "", Profile::Relay), EndWord::Closed);
        assert_eq!(word(1000, "新连接替换", Profile::Official), EndWord::Closed);
        assert_eq!(word(1011, "keepalive ping timeout", Profile::Relay), EndWord::Closed);
    }

    #[test]
    fn what_may_be_a_token_is_not_kept_of_what_the_other_side_says() {
        let end = End::closed(1008, "token解密失败: eyJhbGciOiJFUzI1NiIsInR5cCI6IkpXVCJ9.a.b\r\n!", Profile::Relay);
        assert_eq!(end.said, "token解密失败: … !");
        assert!(End::closed(1000, &"话".repeat(500), Profile::Relay).said.chars().count() <= SAID_CHARS_MAX);
    }
}
