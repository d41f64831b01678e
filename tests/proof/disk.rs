//! A model of the journal on its disk: what waits is one commit, in order; what was not synced may be lost at a power cut,
//! the last of it torn; the disk may be full or take its time. A write-ahead log keeps a prefix, never a hole.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use truetwin_proof::{
    property::PropertyName,
    twin::{
        admission::Lasts,
        held::Held,
        ledger::{Fact, is_open},
        wish::CallerId,
        words::{OpId, Outcome, Settled},
    },
};

/// Orders that may wait (`journal::ORDERS_MAX`, smaller, so that it is met).
const ORDERS_MAX: usize = 256;

/// One order of the hub: facts of one device.
pub(crate) struct Order {
    pub(crate) device: usize,
    pub(crate) facts: Vec<Fact>,
    pub(crate) sure: Lasts,
    /// The commit that somebody waits for.
    pub(crate) commit: Option<u64>,
}

#[derive(Default)]
pub(crate) struct Disk {
    /// Each commit that was written.
    log: Vec<Vec<(usize, Fact)>>,
    /// So many of them are on the disk for certain.
    synced: usize,
    waiting: VecDeque<Order>,
    pub(crate) full: bool,
    pub(crate) stalled: bool,
    pub(crate) refused: u64,
    /// Operations whose admission was written, or was not and that was said.
    pub(crate) kept: BTreeSet<OpId>,
    pub(crate) lost: BTreeSet<OpId>,
}

/// What became of what somebody waited for.
pub(crate) struct Done {
    pub(crate) device: usize,
    pub(crate) commit: Option<u64>,
    pub(crate) kept: bool,
}

/// What a hub finds at its start, of one device.
#[derive(Default)]
pub(crate) struct Found {
    /// What was taken in and has no end; what its caller was told, if anything.
    pub(crate) admitted: Vec<(CallerId, Settled, Option<Outcome>)>,
    pub(crate) known: Vec<(CallerId, Settled)>,
    pub(crate) held: BTreeMap<PropertyName, Held>,
}

impl Disk {
    /// Takes an order. `false`: too many wait, it is not kept.
    pub(crate) fn give(&mut self, order: Order) -> bool {
        let room = self.waiting.len() < ORDERS_MAX;
        if room {
            self.waiting.push_back(order);
        } else {
            self.refused += 1;
            self.lost.extend(admissions(&order.facts));
        }
        room
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Writes everything that waits as one commit.
    pub(crate) fn commit(&mut self) -> Vec<Done> {
        if self.stalled {
            return Vec::new();
        }
        let orders = std::mem::take(&mut self.waiting);
        let kept = !self.full;
        let sure = orders.iter().map(|order| order.sure).max();
        let mut done = Vec::new();
        let mut commit = Vec::new();
        for Order { device, facts, commit: number, .. } in orders {
            done.push(Done { device, commit: number, kept });
            commit.extend(facts.into_iter().map(|fact| (device, fact)));
        }
        let admitted = admissions(commit.iter().map(|(_, fact)| fact));
        if kept {
            self.kept.extend(admitted);
            self.log.push(commit);
            if sure == Some(Lasts::OverPowerCut) {
                self.synced = self.log.len();
            }
        } else {
            self.refused += 1;
            self.lost.extend(admitted);
        }
        done
    }

    /// The process is gone: what waited was never written.
    pub(crate) fn killed(&mut self) {
        self.waiting.clear();
    }

    /// The power is gone: of what was not synced the first `luck` commits are there, one more may be torn and is none.
    pub(crate) fn power_cut(&mut self, luck: u64) {
        self.waiting.clear();
        let unsynced = self.log.len() - self.synced;
        let survive = usize::try_from(luck).expect("a small number") % (unsynced + 1);
        self.log.truncate(self.synced + survive);
        self.synced = self.log.len();
        (self.full, self.stalled) = (false, false);
    }

    /// Reads everything, for `devices` devices.
    pub(crate) fn recover(&self, devices: usize) -> Vec<Found> {
        let mut found: Vec<Found> = (0..devices).map(|_| Found::default()).collect();
        for (device, fact) in self.log.iter().flatten() {
            let of = &mut found[*device];
            match fact {
                Fact::Admitted(caller, settled) => of.admitted.push((caller.clone(), settled.as_ref().clone(), None)),
                Fact::Known(caller, settled) => {
                    of.admitted.retain(|(_, admitted, _)| admitted.op != settled.op);
                    of.known.retain(|(_, known)| known.op != settled.op);
                    of.known.push((caller.clone(), settled.as_ref().clone()));
                }
                Fact::NotTaken(op) => of.admitted.retain(|(_, admitted, _)| admitted.op != *op),
                Fact::Held(property, held) => {
                    of.held.insert(property.clone(), held.as_ref().clone());
                }
                Fact::Unheld(property) => {
                    of.held.remove(property);
                }
            }
        }
        for of in &mut found {
            // Its caller was told that it is at work, and its end was never written.
            let open = of.known.extract_if(.., |(_, settled)| is_open(settled));
            let open: Vec<_> = open.map(|(caller, settled)| (caller, settled, Some(Outcome::Working))).collect();
            of.admitted.extend(open);
        }
        found
    }
}

/// The operations that are known once these facts are.
fn admissions<'f>(facts: impl IntoIterator<Item = &'f Fact>) -> Vec<OpId> {
    let of = |fact: &Fact| match fact {
        Fact::Admitted(_, settled) | Fact::Known(_, settled) => Some(settled.op.clone()),
        Fact::Held(_, held) => Some(held.kept().op),
        Fact::NotTaken(_) | Fact::Unheld(_) => None,
    };
    facts.into_iter().filter_map(of).collect()
}
