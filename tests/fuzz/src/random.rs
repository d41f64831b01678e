//! Where choices come from: a seed, or the bytes of a fuzzer.

/// A source of choices. The same seed or bytes make the same choices on every machine.
pub enum Source<'a> {
    /// xorshift64.
    Seeded(u64),
    /// A fuzzer's bytes; once they are used up, every choice is the first one.
    Bytes(&'a [u8]),
}

impl Source<'_> {
    /// From a seed.
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        match self {
            Self::Seeded(state) => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                (*state >> 32) as u8
            }
            Self::Bytes(bytes) => match bytes.split_first() {
                Some((first, rest)) => {
                    *bytes = rest;
                    *first
                }
                None => 0,
            },
        }
    }

    /// A number below `bound`, which is at most 65 536.
    pub fn below(&mut self, bound: usize) -> usize {
        if bound <= 256 {
            return usize::from(self.byte()) % bound.max(1);
        }
        (usize::from(self.byte()) << 8 | usize::from(self.byte())) % bound
    }

    /// True once in `many` times.
    pub fn once_in(&mut self, many: usize) -> bool {
        self.below(many) == many - 1
    }

    /// One of them.
    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Whether there is nothing more to choose from.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Bytes([]))
    }
}

/// Says which bytes it was about if what is done in its life panics.
pub struct About<'a>(pub &'a [u8]);

impl Drop for About<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("it was about {}", crate::differences::hex(self.0));
        }
    }
}

/// The first seed and how many runs: SEED and RUNS of the environment, or these. Printed, so that a failure can be had again.
pub fn seeds(target: &str, runs: u64) -> std::ops::Range<u64> {
    let number = |name, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (first, runs) = (number("SEED", 1), number("RUNS", runs));
    println!("{target}: {runs} runs from SEED={first}");
    first..first + runs
}
