//! Values, and a relay over pins.

use core::cell::Cell;

use embedded_hal::digital::{ErrorType, InputPin, OutputPin};
use truetwin_wire::{
    Scalar,
    device::PropertySpec,
    words::{EvidenceWord, KindWord, ReasonWord},
};

use crate::{Board, Relay, Relays, value};

fn spec(kind: KindWord) -> PropertySpec<'static> {
    PropertySpec { values: &["day", "night"], ..PropertySpec::new("p", kind, EvidenceWord::Firmware) }
}

fn text(text: &str) -> Scalar {
    Scalar::text(text).unwrap()
}

#[test]
fn a_wish_is_checked_against_the_description() {
    for (kind, wish, expected) in [
        (KindWord::Bool, Scalar::Bool(true), Ok(Scalar::Bool(true))),
        (KindWord::Bool, Scalar::Integer(1), Err(ReasonWord::Malformed)),
        (KindWord::Integer, Scalar::Integer(1), Ok(Scalar::Integer(1))),
        (KindWord::Number, Scalar::Integer(1), Ok(Scalar::Number(1.0))),
        (KindWord::Number, text("1"), Err(ReasonWord::Malformed)),
        (KindWord::Enum, text("day"), Ok(text("day"))),
        (KindWord::Enum, text("noon"), Err(ReasonWord::OutOfRange)),
        (KindWord::Text, text(""), Ok(text(""))),
        (KindWord::Colour, text("#ff8800"), Ok(text("#ff8800"))),
        (KindWord::Colour, text("red"), Err(ReasonWord::OutOfRange)),
    ] {
        assert_eq!(value::checked(&spec(kind), &wish), expected.map(|value| (value, false)), "{kind} {wish:?}");
    }
}

#[test]
fn s3_1_numbers_are_the_same_within_the_tolerance_or_half_a_step() {
    let step = PropertySpec { step: Some(0.5), ..spec(KindWord::Number) };
    let tolerance = PropertySpec { tolerance: Some(2.0), ..step };
    let number = Scalar::Number;
    assert!(
        value::is_same(&step, &number(20.0), &number(20.25)) && !value::is_same(&step, &number(20.0), &number(20.3))
    );
    assert!(value::is_same(&tolerance, &number(20.0), &number(22.0)));
    assert!(!value::is_same(&spec(KindWord::Integer), &Scalar::Integer(3), &Scalar::Integer(4)));
    assert!(!value::is_same(&spec(KindWord::Bool), &Scalar::Bool(true), &text("true")));
}

#[derive(Clone, Copy)]
struct Pin<'w>(&'w Cell<bool>);

impl ErrorType for Pin<'_> {
    type Error = core::convert::Infallible;
}

impl OutputPin for Pin<'_> {
    fn set_low(&mut self) -> Result<(), Self::Error> {
        self.0.set(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Self::Error> {
        self.0.set(true);
        Ok(())
    }
}

impl InputPin for Pin<'_> {
    fn is_high(&mut self) -> Result<bool, Self::Error> {
        Ok(self.0.get())
    }

    fn is_low(&mut self) -> Result<bool, Self::Error> {
        Ok(!self.0.get())
    }
}

#[test]
fn a_relay_reads_its_feedback_and_not_what_it_was_told() {
    let (coil, contact) = (Cell::new(false), Cell::new(false));
    let relay = Relay { output: Pin(&coil), feedback: Pin(&contact), active_low: false, settle_ms: 50, safe: false };
    let mut board = Relays { specs: [spec(KindWord::Bool)], relays: [relay] };
    board.drive(0, &Scalar::Bool(true)).unwrap();
    assert_eq!((coil.get(), board.read(0)), (true, Some(Scalar::Bool(false))));
    contact.set(true);
    assert_eq!(board.read(0), Some(Scalar::Bool(true)));
    board.make_safe();
    assert!(!coil.get());
    assert_eq!((board.read(1), board.drive(1, &Scalar::Bool(true))), (None, Err(ReasonWord::Unsupported)));
}

#[test]
fn a_relay_that_is_active_low_is_on_when_its_pin_is_low() {
    let pad = Cell::new(true);
    let relay = Relay { output: Pin(&pad), feedback: Pin(&pad), active_low: true, settle_ms: 50, safe: false };
    let mut board = Relays { specs: [spec(KindWord::Bool)], relays: [relay] };
    assert_eq!(board.read(0), Some(Scalar::Bool(false)));
    board.drive(0, &Scalar::Bool(true)).unwrap();
    assert_eq!((pad.get(), board.read(0)), (false, Some(Scalar::Bool(true))));
}
