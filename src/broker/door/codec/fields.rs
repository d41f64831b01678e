//! Reading the fields that packets are made of (1.5).

use super::Bad;

/// Reads fields off the front of a slice.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Everything that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Bad> {
        let Some((head, tail)) = self.0.split_at_checked(count) else {
            return Err(Bad::malformed("a field ends after its packet"));
        };
        self.0 = tail;
        Ok(head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Bad> {
        Ok(self.bytes(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Bad> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Bad> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// A packet identifier, which is never 0 (2.2.1).
    pub(super) fn packet_id(&mut self) -> Result<u16, Bad> {
        match self.u16()? {
            0 => Err(Bad::protocol("a packet identifier of 0")),
            id => Ok(id),
        }
    }

    /// Binary data with its length before it (1.5.6).
    pub(super) fn binary(&mut self) -> Result<&'a [u8], Bad> {
        let count = self.u16()?;
        self.bytes(usize::from(count))
    }

    /// A UTF-8 string, without surrogates and U+0000 (1.5.4).
    pub(super) fn text(&mut self) -> Result<&'a str, Bad> {
        let text = std::str::from_utf8(self.binary()?).map_err(|_| Bad::malformed("text that is not UTF-8"))?;
        if text.contains('\0') { Err(Bad::malformed("text with a NUL")) } else { Ok(text) }
    }

    /// A variable byte integer in its shortest form (1.5.5).
    pub(super) fn varint(&mut self) -> Result<usize, Bad> {
        match varint(self.0)? {
            Some((value, used)) if used == shortest(value) => {
                self.bytes(used)?;
                Ok(value)
            }
            Some(_) => Err(Bad::malformed("a variable byte integer longer than needed")),
            None => Err(Bad::malformed("a field ends after its packet")),
        }
    }

    /// Nothing may be left behind a packet's last field.
    pub(super) fn end(self) -> Result<(), Bad> {
        if self.is_empty() { Ok(()) } else { Err(Bad::malformed("a packet that is longer than its fields")) }
    }
}

/// A variable byte integer at the front, and its bytes; `None` if there are not enough bytes yet.
pub(super) fn varint(bytes: &[u8]) -> Result<Option<(usize, usize)>, Bad> {
    let mut value = 0;
    for at in 0..4 {
        let Some(&byte) = bytes.get(at) else { return Ok(None) };
        value |= usize::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Ok(Some((value, at + 1)));
        }
    }
    Err(Bad::malformed("a variable byte integer of more than four bytes"))
}

/// Bytes of a variable byte integer in its shortest form.
pub(super) fn shortest(value: usize) -> usize {
    match value {
        0..=0x7F => 1,
        0x80..=0x3FFF => 2,
        0x4000..=0x1F_FFFF => 3,
        _ => 4,
    }
}
