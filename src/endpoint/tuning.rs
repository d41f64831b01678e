//! The times of an access point's life. All were measured or read off the two kinds there are; tests scale them.

use std::time::Duration;

use super::Profile;

/// Times and bounds of all access points of a hub.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// How long a dial may take with TLS and upgrade: a slow line needs 3 s, and one that hangs must not hang for ever.
    pub dial: Duration,
    /// How long the other side may leave a frame unread before the line counts as dead.
    pub write: Duration,
    /// How long the other side has to answer a close frame.
    pub close: Duration,
    /// The first wait after a loss at most, doubled with each further one.
    pub retry: Duration,
    /// The longest wait; a person who has just restarted the router must not wait for minutes.
    pub retry_max: Duration,
    /// A connection that held so long begins with [`Tuning::retry`] again when it is lost.
    pub steady: Duration,
    /// The least time between an end and the next dial: a relay that is dialled again at once registers the new socket, then
    /// takes it out with the end of the old (seen at 0 ms, not at 20 ms).
    pub pause: Duration,
    /// The same at a relay that may not know yet that the old socket is dead: it finds that out within 40 s by its pings, and
    /// dialled earlier it hangs, for all its agents, until it is restarted (seen at 2 s; not at 60 s).
    pub unclean_pause: Duration,
    /// The wait where another program uses the token: dialling would throw it out, and it us. Doubled up to
    /// [`Tuning::rival_max`].
    pub rival: Duration,
    /// The longest wait beside a rival.
    pub rival_max: Duration,
    /// The official access point asks `ping` each 60 s; after so long without any message the line is dead.
    pub official_silence: Duration,
    /// A relay sends a WebSocket ping each 20 s; after so long without any frame the line is dead.
    pub relay_silence: Duration,
    /// How often the hub itself sends a WebSocket ping to the official access point, whose lines are otherwise idle for a
    /// minute, longer than some home routers keep them. A relay pings often enough by itself.
    pub own_ping: Duration,
    /// How often it is looked whether the tools are still those that were sent.
    pub look: Duration,
    /// Tools must have been other ones for so long before the line is renewed for them: devices greet one after the other.
    pub settle: Duration,
    /// A line is renewed for its tools no earlier than this after it began.
    pub renew_after: Duration,
    /// How long a stop waits for calls to be answered. The hub answers everybody first, so nothing is left but writing.
    pub drain: Duration,
    /// Calls of one endpoint at once. A home speaks one sentence at a time; the next is told that it is too much.
    pub calls_max: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        let s = Duration::from_secs;
        Self {
            dial: s(15),
            write: s(10),
            close: s(2),
            retry: s(2),
            retry_max: s(60),
            steady: s(60),
            pause: s(1),
            unclean_pause: s(60),
            rival: s(300),
            rival_max: s(3_600),
            official_silence: s(130),
            relay_silence: s(50),
            own_ping: s(50),
            look: s(1),
            settle: s(5),
            renew_after: s(30),
            drain: s(1),
            calls_max: 32,
        }
    }
}

impl Tuning {
    /// All times divided by `faster`; the bounds stay.
    #[must_use]
    pub fn scaled(&self, faster: u32) -> Self {
        let Self { dial, write, close, retry, retry_max, steady, pause, unclean_pause, rival, rival_max, .. } = *self;
        let Self { official_silence, relay_silence, own_ping, look, settle, renew_after, drain, calls_max, .. } = *self;
        Self {
            dial: dial / faster,
            write: write / faster,
            close: close / faster,
            retry: retry / faster,
            retry_max: retry_max / faster,
            steady: steady / faster,
            pause: pause / faster,
            unclean_pause: unclean_pause / faster,
            rival: rival / faster,
            rival_max: rival_max / faster,
            official_silence: official_silence / faster,
            relay_silence: relay_silence / faster,
            own_ping: own_ping / faster,
            look: look / faster,
            settle: settle / faster,
            renew_after: renew_after / faster,
            drain: drain / faster,
            calls_max,
        }
    }

    /// How long a line of this kind may be silent.
    pub(super) fn silence(&self, profile: Profile) -> Duration {
        match profile {
            Profile::Official => self.official_silence,
            Profile::Relay => self.relay_silence,
        }
    }

    /// How often the hub pings a line of this kind.
    pub(super) fn ping_every(&self, profile: Profile) -> Option<Duration> {
        match profile {
            Profile::Official => Some(self.own_ping),
            Profile::Relay => None,
        }
    }
}
