//! What counts as one address, and how many connections each has.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use crate::broker::core::lock;

/// An IPv4 address, or the network of an IPv6 one: its host has all the addresses in it to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::broker) enum Peer {
    /// The address.
    V4(u32),
    /// Its first 64 bits.
    V6(u64),
}

impl From<IpAddr> for Peer {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// Who is connected, by address. As large as the connections are many.
#[derive(Default)]
pub(in crate::broker) struct Seats(Arc<Mutex<HashMap<Peer, usize>>>);

/// The place of one connection; free again when it is dropped.
pub(in crate::broker) struct Seat {
    peer: Peer,
    taken: Arc<Mutex<HashMap<Peer, usize>>>,
}

impl Seats {
    /// A place for one more connection of this address, if it has less than `max`.
    pub(in crate::broker) fn take(&self, peer: Peer, max: usize) -> Option<Seat> {
        let mut taken = lock(&self.0);
        let many = taken.entry(peer).or_default();
        if *many >= max {
            return None;
        }
        *many += 1;
        Some(Seat { peer, taken: self.0.clone() })
    }
}

impl Seat {
    /// Whose it is.
    pub(in crate::broker) fn peer(&self) -> Peer {
        self.peer
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(many) = taken.get_mut(&self.peer) {
            *many -= 1;
            if *many == 0 {
                taken.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        address.parse::<IpAddr>().expect("an address").into()
    }

    #[test]
    fn one_host_is_one_address_however_it_is_written() {
        assert_eq!(peer("192.168.1.9"), peer("::ffff:192.168.1.9"));
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_ne!(peer("0.0.0.1"), peer("::1"));
    }

    #[test]
    fn a_place_is_free_again_and_costs_nothing_then() {
        let seats = Seats::default();
        let (one, other) = (peer("127.0.0.1"), peer("127.0.0.2"));
        let first = seats.take(one, 2).expect("the first");
        let _second = seats.take(one, 2).expect("the second");
        assert!(seats.take(one, 2).is_none());
        let third = seats.take(other, 2).expect("another address has its own");
        drop((first, third));
        assert!(seats.take(one, 2).is_some());
        assert_eq!(lock(&seats.0).len(), 1);
    }
}
