//! The things behind the pins, as physics: what relays, motors, lamps and rooms really do. Knows nothing of the firmware, of
//! faults and of the hub; it is what they are judged against.
//!
//! Time is handed in, seconds since the plant began; `speed` makes its own time run faster.

/// One thing that is driven: a contact, a motor, a duty cycle.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) name: &'static str,
    /// Where it is; a contact is at 0 or 1.
    pub(super) at: f64,
    /// Where it is going.
    pub(super) to: f64,
    /// How fast, units a second; infinite for a contact.
    pub(super) per_s: f64,
    /// Its end stops.
    pub(super) ends: (f64, f64),
    /// Where a board brings it after an unclean start; `None` if it stays where it is (a motor, a latch).
    pub(super) safe: Option<f64>,
    /// How often it has begun to move.
    pub(super) moves: u64,
    /// When it last began to move, seconds.
    pub(super) moved_s: Option<f64>,
}

impl Axis {
    pub(super) fn contact(name: &'static str) -> Self {
        Self { safe: Some(0.0), ..Self::motor(name, 0.0, f64::INFINITY, (0.0, 1.0)) }
    }

    pub(super) fn motor(name: &'static str, at: f64, per_s: f64, ends: (f64, f64)) -> Self {
        Self { name, at, to: at, per_s, ends, safe: None, moves: 0, moved_s: None }
    }

    pub(super) fn is_moving(&self) -> bool {
        self.at != self.to
    }

    /// How much longer it moves, seconds of its own time.
    pub(super) fn left_s(&self) -> f64 {
        (self.to - self.at).abs() / self.per_s
    }

    fn advance(&mut self, dt_s: f64) {
        let step = self.per_s * dt_s;
        let left = self.to - self.at;
        self.at = if left.abs() <= step { self.to } else { self.at + step.copysign(left) };
    }
}

/// A room with a heater that a thermostat switches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Room {
    /// °C.
    pub(super) temperature: f64,
    /// The axis that is the set point.
    pub(super) target: usize,
}

/// What the heater gives, K/s; a small room with a strong one.
const HEATING: f64 = 0.02;

/// What the walls take, 1/s, of the difference to [`OUTSIDE`].
const LOSS: f64 = 0.000_5;

/// °C.
const OUTSIDE: f64 = 10.0;

/// The longest step of the room's integration, seconds, and the most steps at a time: beyond that the room is as it will be.
const ROOM_STEP_S: f64 = 1.0;
const ROOM_STEPS_MAX: usize = 20_000;

/// What a sensor measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Gauge {
    /// Light at the sensor, lux: the daylight, and what the lamp gives.
    Lux {
        /// The contact that feeds the lamp.
        relay: usize,
        /// Its brightness, percent.
        brightness: usize,
    },
    /// Power that the load draws, watts.
    Watts {
        /// The contact that feeds it.
        relay: usize,
    },
    /// Counts of a wheel on a shaft.
    Encoder(usize),
    /// °C.
    Thermometer,
    /// 1 while a door is not closed.
    Contact(usize),
    /// How often a button was pressed.
    Presses,
}

/// Light without the lamp, lux.
const DAYLIGHT: f64 = 12.0;

/// Light of the lamp at full brightness, lux, where the sensor hangs.
const LAMP: f64 = 430.0;

/// Power of the load, watts, and what the meter shows without one.
const LOAD: f64 = 46.0;
const STANDBY: f64 = 0.4;

/// Counts of the encoder for each degree.
const COUNTS: f64 = 11.377_8; // 4096 a turn

/// Everything behind the pins of one device.
#[derive(Clone, Debug)]
pub(super) struct Plant {
    pub(super) axes: Vec<Axis>,
    pub(super) room: Option<Room>,
    /// A motor that each pulse starts, stops, or turns round; `None` without one.
    pub(super) pulsed: Option<usize>,
    pub(super) presses: u64,
    /// The load behind the contacts has no power.
    pub(super) dead_load: bool,
    pub(super) speed: f64,
    now_s: f64,
    /// Where the pulsed motor goes next.
    opens: bool,
}

impl Plant {
    pub(super) fn new(axes: Vec<Axis>, speed: f64) -> Self {
        Self { axes, room: None, pulsed: None, presses: 0, dead_load: false, speed, now_s: 0.0, opens: true }
    }

    /// Lets time pass; the axes that arrived.
    pub(super) fn advance(&mut self, now_s: f64) -> Vec<usize> {
        let dt_s = (now_s - self.now_s).max(0.0) * self.speed;
        self.now_s = now_s.max(self.now_s);
        let mut arrived = Vec::new();
        for (at, axis) in self.axes.iter_mut().enumerate().filter(|(_, axis)| axis.is_moving()) {
            axis.advance(dt_s);
            if !axis.is_moving() {
                arrived.push(at);
            }
        }
        if let Some(room) = &mut self.room {
            let target = self.axes.get(room.target).map_or(OUTSIDE, |axis| axis.at);
            heat(room, target, dt_s, self.dead_load);
        }
        arrived
    }

    /// Begins to move an axis, as far as its end stops let it; whether it moves.
    pub(super) fn go(&mut self, axis: usize, to: f64) -> bool {
        let now_s = self.now_s;
        let Some(axis) = self.axes.get_mut(axis) else { return false };
        let to = to.clamp(axis.ends.0, axis.ends.1);
        if axis.to == to {
            return false;
        }
        axis.to = to;
        axis.moves += 1;
        axis.moved_s = Some(now_s);
        if axis.per_s.is_infinite() {
            axis.at = to;
        }
        true
    }

    /// Stops an axis where it is.
    pub(super) fn stop(&mut self, axis: usize) {
        if let Some(axis) = self.axes.get_mut(axis) {
            axis.to = axis.at;
        }
    }

    /// A pulse on a garage door's input: stops it, or starts it the other way.
    pub(super) fn pulse(&mut self) {
        let Some(at) = self.pulsed else { return };
        let Some(axis) = self.axes.get(at) else { return };
        let (low, high) = axis.ends;
        if axis.is_moving() {
            self.stop(at);
        } else if axis.at >= high || (axis.at > low && !self.opens) {
            self.opens = true;
            self.go(at, low);
        } else {
            self.opens = false;
            self.go(at, high);
        }
    }

    /// What a sensor really measures, in its unit.
    pub(super) fn measured(&self, gauge: Gauge) -> f64 {
        let at = |axis: usize| self.axes.get(axis).map_or(0.0, |axis| axis.at);
        let powered = if self.dead_load { 0.0 } else { 1.0 };
        match gauge {
            Gauge::Lux { relay, brightness } => DAYLIGHT + powered * at(relay) * at(brightness) / 100.0 * LAMP,
            Gauge::Watts { relay } => STANDBY + powered * at(relay) * LOAD,
            Gauge::Encoder(axis) => (at(axis) * COUNTS).round(),
            Gauge::Thermometer => self.room.map_or(OUTSIDE, |room| room.temperature),
            Gauge::Contact(axis) => f64::from(u8::from(at(axis) > 0.0)),
            #[expect(clippy::cast_precision_loss, reason = "nobody presses 2^52 times")]
            Gauge::Presses => self.presses as f64,
        }
    }

    /// When the next axis arrives, seconds.
    pub(super) fn next_arrival_s(&self) -> Option<f64> {
        let left = self.axes.iter().filter(|axis| axis.is_moving()).map(|axis| axis.left_s() / self.speed);
        left.reduce(f64::min).map(|left| self.now_s + left)
    }
}

/// The heater is on below the set point.
fn heat(room: &mut Room, target: f64, dt_s: f64, dead_load: bool) {
    let mut left_s = dt_s;
    for _ in 0..ROOM_STEPS_MAX {
        if left_s <= 0.0 {
            break;
        }
        let step_s = left_s.min(ROOM_STEP_S);
        let heater = if room.temperature < target && !dead_load { HEATING } else { 0.0 };
        room.temperature += (heater - LOSS * (room.temperature - OUTSIDE)) * step_s;
        left_s -= step_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_there_at_once_and_counts_its_moves() {
        let mut plant = Plant::new(vec![Axis::contact("relay")], 1.0);
        assert!(plant.go(0, 1.0));
        assert!(!plant.go(0, 1.0), "it is there");
        assert_eq!((plant.axes[0].at, plant.axes[0].moves), (1.0, 1));
    }

    #[test]
    fn a_motor_takes_its_time_and_stops_at_its_ends() {
        let mut plant = Plant::new(vec![Axis::motor("position", 0.0, 4.0, (0.0, 100.0))], 1.0);
        plant.go(0, 200.0);
        assert_eq!(plant.next_arrival_s(), Some(25.0));
        plant.advance(10.0);
        assert_eq!((plant.axes[0].at, plant.axes[0].is_moving()), (40.0, true));
        plant.stop(0);
        plant.advance(20.0);
        assert_eq!(plant.axes[0].at, 40.0);
        plant.go(0, 200.0);
        assert_eq!(plant.advance(60.0), [0]);
        assert_eq!((plant.axes[0].at, plant.axes[0].moves), (100.0, 2));
    }

    #[test]
    fn ten_times_the_speed_is_a_tenth_of_the_time() {
        let mut plant = Plant::new(vec![Axis::motor("position", 0.0, 4.0, (0.0, 100.0))], 10.0);
        plant.go(0, 100.0);
        assert_eq!(plant.next_arrival_s(), Some(2.5));
        plant.advance(2.5);
        assert!(!plant.axes[0].is_moving());
    }

    #[test]
    fn a_room_approaches_the_set_point_and_cools_without_power() {
        let mut plant = Plant::new(vec![Axis::motor("target", 21.0, f64::INFINITY, (5.0, 30.0))], 1.0);
        plant.room = Some(Room { temperature: 17.0, target: 0 });
        plant.advance(60.0);
        let warmer = plant.measured(Gauge::Thermometer);
        assert!(warmer > 17.5 && warmer < 21.0, "{warmer}");
        plant.advance(10_000.0);
        assert!((plant.measured(Gauge::Thermometer) - 21.0).abs() < 0.1);
        plant.dead_load = true;
        plant.advance(12_000.0);
        assert!(plant.measured(Gauge::Thermometer) < 16.0);
    }

    #[test]
    fn a_pulse_starts_stops_and_turns_round() {
        let mut plant = Plant::new(vec![Axis::motor("door", 0.0, 0.1, (0.0, 1.0))], 1.0);
        plant.pulsed = Some(0);
        plant.pulse();
        plant.advance(5.0);
        assert_eq!((plant.axes[0].to, plant.measured(Gauge::Contact(0))), (1.0, 1.0));
        plant.pulse();
        assert!(!plant.axes[0].is_moving());
        plant.pulse();
        assert_eq!(plant.axes[0].to, 0.0, "the other way");
        plant.advance(60.0);
        assert_eq!(plant.measured(Gauge::Contact(0)), 0.0);
    }

    #[test]
    fn a_dead_lamp_gives_no_light() {
        let mut plant = Plant::new(vec![Axis::contact("relay"), Axis::contact("brightness")], 1.0);
        plant.axes[1].ends = (0.0, 100.0);
        plant.go(0, 1.0);
        plant.go(1, 50.0);
        let gauge = Gauge::Lux { relay: 0, brightness: 1 };
        assert_eq!(plant.measured(gauge), 12.0 + 215.0);
        plant.dead_load = true;
        assert_eq!(plant.measured(gauge), 12.0);
    }
}
