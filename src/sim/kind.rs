//! The sorts of device that can be simulated: what each describes, and what stands behind its pins.

use std::{fmt, str::FromStr};

use truetwin_wire::{
    Scalar,
    device::{ActionSpec, Failsafe, PropertySpec},
    words::{ClassWord, EvidenceWord, KindWord, OnWithdraw, RoleWord},
};

use super::{
    Fault,
    plant::{Axis, Gauge, Plant, Room},
};

/// Declares the closed set with its words and sentences.
macro_rules! kinds {
    ($($(#[$attribute:meta])* $variant:ident, $word:literal, $sentence:literal;)+) => {
        /// A sort of device.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
        pub enum Kind {
            $(#[doc = $sentence] $(#[$attribute])* $variant,)+
        }

        impl Kind {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word on the command line.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What it is, for `truetwin sim --list`.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence,)+ }
            }
        }
    };
}

kinds! {
    #[default] Socket, "socket", "A socket with one relay, `relay`, read back at the pin.";
    Meter, "meter", "A socket whose meter measures what the load really draws: `relay`, `power`.";
    Lamp, "lamp", "A dimmable lamp with a light sensor: `relay`, `brightness`, `lux`.";
    Servo, "servo", "A servo with an encoder on its shaft: `angle`, `encoder`.";
    Thermostat, "thermostat", "A held set point and a slow thermometer: `target`, `temperature`.";
    Blind, "blind", "A blind with end stops that says how much longer it takes (25 s for the full way): `position`.";
    Lock, "lock", "A lock whose bolt is seen by a contact: `locked`.";
    Garage, "garage", "A garage door with one input for pulses and a contact: action `pulse`, `door`.";
    Button, "button", "A button that counts its presses, and a finger that presses it: action `press`, `presses`.";
    Infrared, "infrared", "An infrared sender, which cannot know what became of a telegram: `power`, action `mute`.";
    Relays, "relays", "A board of four relays; the last two exclude each other, the last one falls without the hub: `relay_1` to `relay_4`.";
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is no kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no kind of device; `truetwin sim --list` names them all")]
pub struct UnknownKind(pub String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        let known = Self::ALL.iter().copied().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| UnknownKind(word.chars().take(64).collect()))
    }
}

/// How long a relay is described to take, milliseconds; the hub allows it 1 s.
pub const EXPECTED_MS: u32 = 300;

/// What an update adds (see [`Fault::UpdateAdd`]).
pub(super) const EXTRA: &str = "extra";

/// The full way of a blind and of a garage door, seconds.
const BLIND_S: f64 = 25.0;
const GARAGE_S: f64 = 12.0;

/// Where the value of a property comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    /// Something that is driven, read at the thing itself.
    Axis(usize),
    /// A measurement, and by how much it must change to be told unasked.
    Gauge(Gauge, f64),
}

/// A device: its description, and what stands behind each property.
pub(super) struct Made {
    pub(super) properties: Vec<(PropertySpec<'static>, Source)>,
    pub(super) actions: &'static [ActionSpec<'static>],
    pub(super) exclusive: &'static [&'static [&'static str]],
}

type Property = (PropertySpec<'static>, Source);

static OFF: Scalar = Scalar::Bool(false);
static FROST: Scalar = Scalar::Number(16.0);

fn spec(name: &'static str, role: RoleWord, kind: KindWord, feedback: EvidenceWord) -> PropertySpec<'static> {
    let settable = true;
    PropertySpec {
        role: Some(role),
        repeatable: Some(true),
        settable,
        expected_ms: Some(EXPECTED_MS),
        ..PropertySpec::new(name, kind, feedback)
    }
}

fn relay(name: &'static str, role: RoleWord, stable_ms: u32, axis: usize) -> Property {
    let spec = PropertySpec { stable_ms: Some(stable_ms), ..spec(name, role, KindWord::Bool, EvidenceWord::Pin) };
    (spec, Source::Axis(axis))
}

fn gauge(name: &'static str, unit: Option<&'static str>, tolerance: f64, source: Gauge) -> Property {
    let spec = PropertySpec {
        unit,
        tolerance: Some(tolerance),
        expected_ms: None,
        repeatable: None,
        settable: false,
        ..spec(name, RoleWord::Sensor, KindWord::Number, EvidenceWord::Sensor)
    };
    (spec, Source::Gauge(source, tolerance))
}

/// Milliseconds of a movement at some speed.
fn scaled_ms(seconds: f64, speed: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` stops at the ends of u32")]
    let ms = (seconds * 1_000.0 / speed).ceil() as u32;
    ms
}

impl Kind {
    /// What stands behind the pins.
    pub(super) fn plant(self, speed: f64) -> Plant {
        let mut axes = self.axes();
        axes.push(Axis::contact(EXTRA));
        let mut plant = Plant::new(axes, speed);
        plant.room = (self == Self::Thermostat).then_some(Room { temperature: 18.0, target: 0 });
        plant.pulsed = (self == Self::Garage).then_some(0);
        plant
    }

    fn axes(self) -> Vec<Axis> {
        let contacts = |names: &[&'static str]| names.iter().map(|name| Axis::contact(name)).collect::<Vec<_>>();
        let motor = |name, at, per_s, ends| vec![Axis::motor(name, at, per_s, ends)];
        match self {
            Self::Socket | Self::Meter => contacts(&["relay"]),
            Self::Lamp => {
                let mut axes = contacts(&["relay"]);
                axes.push(Axis::motor("brightness", 100.0, 200.0, (0.0, 100.0)));
                axes
            }
            Self::Servo => motor("angle", 90.0, 120.0, (0.0, 180.0)),
            Self::Thermostat => motor("target", 18.0, f64::INFINITY, (5.0, 30.0)),
            Self::Blind => motor("position", 0.0, 100.0 / BLIND_S, (0.0, 100.0)),
            Self::Lock => motor("locked", 1.0, 1.25, (0.0, 1.0)),
            Self::Garage => motor("door", 0.0, 1.0 / GARAGE_S, (0.0, 1.0)),
            Self::Button => Vec::new(),
            Self::Infrared => motor("power", 0.0, f64::INFINITY, (0.0, 1.0)),
            Self::Relays => contacts(&["relay_1", "relay_2", "relay_3", "relay_4"]),
        }
    }

    /// The description of this firmware, or of the update that a fault stands for.
    pub(super) fn made(self, speed: f64, stable_ms: u32, update: Fault) -> Made {
        let mut properties = self.properties(speed, stable_ms);
        if update == Fault::UpdateDrop {
            properties.pop();
        }
        if update == Fault::UpdateAdd {
            // Every plant has one contact more for it, behind all others.
            properties.push(relay(EXTRA, RoleWord::Heater, stable_ms, self.axes().len()));
        }
        if let (Fault::UpdateKind, Some((spec, _))) = (update, properties.first_mut()) {
            spec.kind = if spec.kind == KindWord::Number { KindWord::Integer } else { KindWord::Number };
            spec.tolerance = Some(0.1);
        }
        // What is gone excludes nothing any more; the hub refuses a hello that says otherwise.
        let exclusive = if update == Fault::UpdateDrop { &[] } else { self.exclusive() };
        Made { properties, actions: self.actions(), exclusive }
    }

    fn properties(self, speed: f64, stable_ms: u32) -> Vec<Property> {
        use EvidenceWord::{Firmware, None as Unheard, Sensor};
        use KindWord::{Bool, Integer, Number};
        let number = |min, max, step, unit, base: PropertySpec<'static>| PropertySpec {
            min: Some(min),
            max: Some(max),
            step: Some(step),
            unit: Some(unit),
            ..base
        };
        let moving = |seconds: f64, base: PropertySpec<'static>| PropertySpec {
            expected_ms: Some(scaled_ms(seconds, speed).max(EXPECTED_MS)),
            stable_ms: Some(0),
            ..base
        };
        match self {
            Self::Socket => vec![relay("relay", RoleWord::Socket, stable_ms, 0)],
            Self::Meter => vec![
                relay("relay", RoleWord::Socket, stable_ms, 0),
                gauge("power", Some("W"), 5.0, Gauge::Watts { relay: 0 }),
            ],
            Self::Lamp => {
                let dimmer = moving(0.5, spec("brightness", RoleWord::Light, Integer, Firmware));
                vec![
                    relay("relay", RoleWord::Light, stable_ms, 0),
                    (number(0.0, 100.0, 1.0, "%", dimmer), Source::Axis(1)),
                    gauge("lux", Some("lx"), 10.0, Gauge::Lux { relay: 0, brightness: 1 }),
                ]
            }
            Self::Servo => {
                let servo = moving(1.5, spec("angle", RoleWord::Other, Number, Firmware));
                let angle = PropertySpec { tolerance: Some(2.0), clamps: true, ..number(0.0, 180.0, 1.0, "°", servo) };
                vec![(angle, Source::Axis(0)), gauge("encoder", None, 20.0, Gauge::Encoder(0))]
            }
            Self::Thermostat => {
                let held = PropertySpec {
                    class: Some(ClassWord::Held),
                    failsafe: Some(Failsafe { value: &FROST, after_ms: 3_600_000 }),
                    ..spec("target", RoleWord::Heater, Number, Firmware)
                };
                vec![
                    (number(5.0, 30.0, 0.5, "°C", held), Source::Axis(0)),
                    gauge("temperature", Some("°C"), 0.2, Gauge::Thermometer),
                ]
            }
            Self::Blind => {
                let blind = moving(BLIND_S, spec("position", RoleWord::Blind, Number, Sensor));
                let position = PropertySpec {
                    tolerance: Some(2.0),
                    on_withdraw: Some(OnWithdraw::Stop),
                    ..number(0.0, 100.0, 1.0, "%", blind)
                };
                vec![(position, Source::Axis(0))]
            }
            Self::Lock => vec![(moving(0.8, spec("locked", RoleWord::Lock, Bool, Sensor)), Source::Axis(0))],
            Self::Garage => vec![contact("door")],
            Self::Button => {
                let (mut presses, source) = gauge("presses", None, 0.5, Gauge::Presses);
                (presses.kind, presses.tolerance) = (Integer, None);
                vec![(presses, source)]
            }
            Self::Infrared => vec![(spec("power", RoleWord::Other, Bool, Unheard), Source::Axis(0))],
            Self::Relays => {
                let names = ["relay_1", "relay_2", "relay_3", "relay_4"];
                let one = |(at, name): (usize, &'static str)| {
                    let (mut spec, source) = relay(name, RoleWord::Light, stable_ms, at);
                    spec.min_interval_ms = Some(200);
                    spec.failsafe = (at == 3).then_some(Failsafe { value: &OFF, after_ms: 60_000 });
                    (spec, source)
                };
                names.into_iter().enumerate().map(one).collect()
            }
        }
    }

    fn actions(self) -> &'static [ActionSpec<'static>] {
        const PULSE: ActionSpec<'static> =
            ActionSpec { role: Some(RoleWord::Door), expected_ms: Some(500), ..ActionSpec::new("pulse", false) };
        const PRESS: ActionSpec<'static> = ActionSpec::new("press", false);
        const MUTE: ActionSpec<'static> =
            ActionSpec { feedback: Some(EvidenceWord::None), ..ActionSpec::new("mute", true) };
        match self {
            Self::Garage => &[PULSE],
            Self::Button => &[PRESS],
            Self::Infrared => &[MUTE],
            Self::Socket
            | Self::Meter
            | Self::Lamp
            | Self::Servo
            | Self::Thermostat
            | Self::Blind
            | Self::Lock
            | Self::Relays => &[],
        }
    }

    fn exclusive(self) -> &'static [&'static [&'static str]] {
        if self == Self::Relays { &[&["relay_3", "relay_4"]] } else { &[] }
    }
}

/// A contact at a door: open or closed, and not to be set.
fn contact(name: &'static str) -> Property {
    let (spec, source) = gauge(name, None, 0.5, Gauge::Contact(0));
    (PropertySpec { role: Some(RoleWord::Door), kind: KindWord::Bool, tolerance: None, ..spec }, source)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back_as_its_word() {
        for kind in Kind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(*kind));
            assert!(kind.sentence().ends_with('.'), "{kind}");
        }
        assert_eq!("toaster".parse::<Kind>(), Err(UnknownKind("toaster".to_owned())));
    }

    #[test]
    fn every_axis_that_a_property_reads_is_there() {
        for kind in Kind::ALL {
            let plant = kind.plant(1.0);
            for (spec, source) in kind.made(1.0, 200, Fault::None).properties {
                if let Source::Axis(axis) = source {
                    assert_eq!(plant.axes.get(axis).map(|axis| axis.name), Some(spec.name), "{kind}");
                }
            }
        }
    }

    #[test]
    fn a_faster_blind_is_described_as_faster() {
        let expected = |speed| Kind::Blind.made(speed, 200, Fault::None).properties[0].0.expected_ms.unwrap();
        assert_eq!((expected(1.0), expected(10.0)), (25_000, 2_500));
    }
}
