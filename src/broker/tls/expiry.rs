//! When a certificate ends, out of its bytes (RFC 5280, 4.1): the one fact of it that the hub's owner must know in time.
//! Everything else about certificates is rustls' business.

use jiff::{civil::DateTime, tz::TimeZone};

/// DER tags (X.690, 8).
const SEQUENCE: u8 = 0x30;
const EXPLICIT_VERSION: u8 = 0xA0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `notAfter`, seconds since 1970; `None` if the bytes are no certificate, or it is before 1970.
pub(super) fn not_after_s(der: &[u8]) -> Option<u64> {
    let (_, certificate, _) = element(der)?;
    let (_, mut rest, _) = element(certificate)?; // tbsCertificate
    if rest.first() == Some(&EXPLICIT_VERSION) {
        rest = element(rest)?.2;
    }
    for _before in ["serialNumber", "signature", "issuer"] {
        rest = element(rest)?.2;
    }
    let (tag, validity, _) = element(rest)?;
    if tag != SEQUENCE {
        return None;
    }
    let (_, _, rest) = element(validity)?; // notBefore
    let (tag, time, _) = element(rest)?;
    seconds(tag, std::str::from_utf8(time).ok()?)
}

/// The first element: its tag, its content, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
        if bytes.len() > 4 {
            return None; // longer than any file that is read
        }
        (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ` (RFC 5280, 4.1.2.5).
fn seconds(tag: u8, time: &str) -> Option<u64> {
    let time = match tag {
        // Two digits are 1950 to 2049.
        UTC_TIME if time.get(..2)? < "50" => format!("20{time}"),
        UTC_TIME => format!("19{time}"),
        GENERALIZED_TIME => time.to_owned(),
        _ => return None,
    };
    let at = DateTime::strptime("%Y%m%d%H%M%SZ", &time).ok()?;
    u64::try_from(at.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_time_are_read() {
        assert_eq!(seconds(UTC_TIME, "261130212200Z"), Some(1_796_073_720));
        assert_eq!(seconds(UTC_TIME, "500101000000Z"), None, "1950 is before 1970");
        assert_eq!(seconds(GENERALIZED_TIME, "20500101000000Z"), Some(2_524_608_000));
        for (tag, time) in [(UTC_TIME, "2611302122Z"), (UTC_TIME, ""), (0x13, "261130212200Z"), (UTC_TIME, "é")] {
            assert_eq!(seconds(tag, time), None, "{time}");
        }
    }

    #[test]
    fn the_end_of_a_real_certificate_is_found_and_of_half_of_one_is_not() {
        let mut params = rcgen::CertificateParams::new(["hub.local".to_owned()]).expect("a name");
        let key = rcgen::KeyPair::generate().expect("a key");
        for (year, expected) in [(2031, 1_924_992_000), (2051, 2_556_144_000)] {
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            let certificate = params.self_signed(&key).expect("a certificate");
            assert_eq!(not_after_s(certificate.der()), Some(expected), "{year}");
            for bytes in 0..certificate.der().len() / 4 {
                assert_eq!(not_after_s(&certificate.der()[..bytes]), None);
            }
        }
        assert_eq!(not_after_s(&[0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF]), None);
    }
}
