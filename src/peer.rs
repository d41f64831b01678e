//! What counts as one address, and how many connections each has. Knows nothing of what they are for.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// An IPv4 address, or the network of an IPv6 one: its host has all the addresses in it to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
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

/// Who is connected, by address. As large as the connections are many. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Seats(Arc<Mutex<HashMap<Peer, usize>>>);

/// The place of one connection; free again when it is dropped.
#[derive(Debug)]
pub struct Seat {
    peer: Peer,
    seats: Seats,
}

impl Seats {
    /// A place for one more connection of this address, if it has less than `max`.
    pub fn take(&self, peer: Peer, max: usize) -> Option<Seat> {
        let mut taken = self.taken();
        let many = taken.get(&peer).copied().unwrap_or_default();
        if many >= max {
            return None;
        }
        taken.insert(peer, many + 1);
        drop(taken);
        Some(Seat { peer, seats: self.clone() })
    }

    /// Nothing panics while it is held; were it so, the numbers would still be good enough.
    fn taken(&self) -> MutexGuard<'_, HashMap<Peer, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Whose it is.
    pub fn peer(&self) -> Peer {
        self.peer
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
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
        assert_eq!(seats.taken().len(), 1);
    }
}
