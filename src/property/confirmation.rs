//! What has to be asked for before something is moved that can do harm (semantics 7.2), and which end of it is the safe one.

use super::{Action, Description, DeviceId, Kind, Property, PropertyName, Role, Value};

/// How a person agrees to a movement that can do harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confirm {
    /// Nobody is asked: the owner's word.
    None,
    /// The assistant asks the person and confirms with a code that it was given with the question.
    Ask,
    /// The person says a secret code that the assistant was never given.
    SpokenCode,
    /// Somebody presses a button in the house.
    Press,
}

impl Confirm {
    /// All of them, the weakest first.
    pub const ALL: &[Self] = &[Self::None, Self::Ask, Self::SpokenCode, Self::Press];

    /// The word in the configuration, answers and documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Ask => "ask",
            Self::SpokenCode => "spoken_code",
            Self::Press => "press",
        }
    }
}

/// How a property or an action is confirmed: the owner's word, and what its role does not say.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Confirmation {
    /// The owner's word; `None`: by role.
    pub how: Option<Confirm>,
    /// The device gives it a role that this version does not know (`gate`): it may be one that can do harm, so it is asked
    /// about unless the owner says otherwise.
    pub strange_role: bool,
    /// What is pressed, with [`Confirm::Press`]: a button's property, of this or another device.
    pub press: Option<(DeviceId, PropertyName)>,
}

/// What is wished of a property.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Movement<'a> {
    /// This value.
    To(&'a Value),
    /// So much more, or less.
    By(f64),
    /// The other of two values, whichever that is.
    Toggle,
}

/// What a heater is set to without getting warmer by it.
const COOL_WORDS: [&str; 8] = ["off", "cool", "cooling", "dry", "fan", "fan_only", "standby", "away"];

impl Property {
    /// How a movement has to be confirmed; `None`: not at all. `now` is what it is at, where that is known freshly: only
    /// what is known to be lower counts as down.
    pub fn confirmation(&self, wanted: Movement<'_>, now: Option<&Value>) -> Option<Confirm> {
        how(&self.terms.confirmation, self.role).filter(|_| !self.is_safe_end(wanted, now))
    }

    /// Whether what it is at now decides on [`Self::confirmation`].
    pub fn depends_on_now(&self, wanted: Movement<'_>) -> bool {
        let number = matches!(wanted, Movement::To(Value::Integer(_) | Value::Number(_)));
        number && self.role == Role::Heater && self.confirmation(wanted, None).is_some()
    }

    /// Whether any movement of it is asked about.
    pub fn may_need_confirmation(&self) -> bool {
        self.settable && how(&self.terms.confirmation, self.role).is_some()
    }

    /// Locked, a heater off or lower; there is no safe end of a door, nor of what the owner named.
    fn is_safe_end(&self, wanted: Movement<'_>, now: Option<&Value>) -> bool {
        match (self.role, wanted) {
            (Role::Lock, Movement::To(Value::Bool(locked))) => *locked,
            (Role::Lock, Movement::To(Value::Text(word))) => word.eq_ignore_ascii_case("locked"),
            (Role::Heater, Movement::To(Value::Bool(on))) => !on,
            (Role::Heater, Movement::By(amount)) => amount < 0.0,
            (Role::Heater, Movement::To(Value::Text(word))) => {
                self.kind == Kind::Enum && COOL_WORDS.iter().any(|cool| word.eq_ignore_ascii_case(cool))
            }
            (Role::Heater, Movement::To(value @ (Value::Integer(_) | Value::Number(_)))) => {
                let (value, now) = (number(value), now.and_then(number));
                let at_most = |limit: Option<f64>| value.zip(limit).is_some_and(|(value, limit)| value <= limit);
                at_most(self.min) || at_most(now)
            }
            (Role::Lock, Movement::To(Value::Integer(_) | Value::Number(_)) | Movement::By(_)) => false,
            (Role::Lock | Role::Heater, Movement::Toggle) => false,
            (
                Role::Light
                | Role::Socket
                | Role::Door
                | Role::Blind
                | Role::Valve
                | Role::Fan
                | Role::Pump
                | Role::Sensor
                | Role::Other,
                _,
            ) => false,
        }
    }
}

impl Action {
    /// How doing it has to be confirmed; `None`: not at all. To stop something is never asked about: asking would be the
    /// danger.
    pub fn needs_confirmation(&self) -> Option<Confirm> {
        let safe: &[&str] = match self.role {
            Role::Lock => &["stop", "lock"],
            Role::Heater => &["stop", "off", "down", "cool"],
            Role::Door
            | Role::Light
            | Role::Socket
            | Role::Blind
            | Role::Valve
            | Role::Fan
            | Role::Pump
            | Role::Sensor
            | Role::Other => &["stop"],
        };
        how(&self.confirmation, self.role).filter(|_| !safe.contains(&&*self.name))
    }
}

impl Description {
    /// An action for which its owner has no word of its own is confirmed as what it moves: as the property whose value it
    /// brings about (`by_action`), and as the properties of its role are by the owner's word. Else it would lead past them.
    pub fn confirm_actions_as_properties(&mut self) {
        let Self { properties, actions, .. } = self;
        for action in actions.iter_mut().filter(|action| action.confirmation.how.is_none()) {
            let by_role = how(&action.confirmation, action.role);
            let asked = properties.iter().filter_map(|property| {
                let brought = property.terms.by_action.iter().filter(|(_, name)| *name == action.name);
                let by_value = brought.filter_map(|(value, _)| property.confirmation(Movement::To(value), None)).max();
                let of_role = property.role == action.role && action.role != Role::Other;
                let by_word = property.terms.confirmation.how.filter(|how| of_role && Some(*how) > by_role);
                by_value.max(by_word).map(|how| (how, property.terms.confirmation.press.clone()))
            });
            let strictest = asked.max_by_key(|(how, _)| *how).filter(|(how, _)| Some(*how) > by_role);
            if let Some((how, press)) = strictest {
                action.confirmation = Confirmation { how: Some(how), press, ..action.confirmation };
            }
        }
    }
}

/// The owner's word, else [`Confirm::Ask`] for what can do harm.
fn how(owner: &Confirmation, role: Role) -> Option<Confirm> {
    let by_role = match role {
        _ if owner.strange_role => Confirm::Ask,
        Role::Lock | Role::Door | Role::Heater => Confirm::Ask,
        Role::Light
        | Role::Socket
        | Role::Blind
        | Role::Valve
        | Role::Fan
        | Role::Pump
        | Role::Sensor
        | Role::Other => Confirm::None,
    };
    Some(owner.how.unwrap_or(by_role)).filter(|how| *how != Confirm::None)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(value) => Some(f64::from(*value)),
        Value::Number(value) => Some(*value),
        Value::Bool(_) | Value::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::{Class, Evidence, Terms};

    fn property(role: Role, kind: Kind) -> Property {
        Property {
            name: "p".into(),
            role,
            kind,
            unit: None,
            min: Some(5.0),
            max: Some(30.0),
            step: None,
            tolerance: None,
            values: vec!["off".into(), "heat".into()],
            class: Class::Momentary,
            feedback: Evidence::Pin,
            expected_ms: 100,
            stable_ms: 0,
            min_interval_ms: 0,
            settable: true,
            repeatable: true,
            terms: Terms::default(),
        }
    }

    #[test]
    fn s7_2_the_harmful_direction_is_asked_about_and_the_safe_end_is_not() {
        let yes = Value::Bool(true);
        let no = Value::Bool(false);
        let to = |role, value: &Value| property(role, Kind::Bool).confirmation(Movement::To(value), None);
        assert_eq!((to(Role::Lock, &no), to(Role::Lock, &yes)), (Some(Confirm::Ask), None));
        assert_eq!((to(Role::Door, &no), to(Role::Door, &yes)), (Some(Confirm::Ask), Some(Confirm::Ask)));
        assert_eq!((to(Role::Heater, &no), to(Role::Heater, &yes)), (None, Some(Confirm::Ask)));
        assert_eq!((to(Role::Light, &yes), to(Role::Socket, &yes), to(Role::Blind, &yes)), (None, None, None));
        let heat = |wanted: Movement<'_>, now: Option<f64>| {
            let now = now.map(Value::Number);
            property(Role::Heater, Kind::Number).confirmation(wanted, now.as_ref()).is_some()
        };
        let value = Value::Number(20.0);
        assert!(heat(Movement::To(&value), None) && heat(Movement::To(&value), Some(19.5)));
        assert!(!heat(Movement::To(&value), Some(20.0)) && !heat(Movement::To(&Value::Number(5.0)), None));
        assert!(heat(Movement::By(0.5), Some(10.0)) && !heat(Movement::By(-0.5), None));
        let mode = |word: &str| {
            let word = Value::Text(word.into());
            property(Role::Heater, Kind::Enum).confirmation(Movement::To(&word), None).is_some()
        };
        assert!(mode("heat") && !mode("off") && !mode("Cool"));
    }

    #[test]
    fn s7_2_the_owners_word_counts_for_any_role_and_none_is_his_too() {
        let yes = Value::Bool(true);
        let with = |role, how| {
            let mut property = property(role, Kind::Bool);
            property.terms.confirmation.how = Some(how);
            property.confirmation(Movement::To(&yes), None)
        };
        assert_eq!(with(Role::Light, Confirm::SpokenCode), Some(Confirm::SpokenCode));
        assert_eq!(with(Role::Door, Confirm::None), None);
        assert_eq!(with(Role::Lock, Confirm::Press), None, "locking stays the safe end");
    }

    #[test]
    fn s7_2_an_action_is_no_way_past_the_property_that_it_moves() {
        let by_word = |how, role, by_action: &[(bool, &str)]| {
            let mut property = property(role, Kind::Bool);
            let press = (DeviceId::new("bell").expect("an id"), "presses".into());
            property.terms.confirmation = Confirmation { how, press: Some(press), ..Confirmation::default() };
            property.terms.by_action =
                by_action.iter().map(|(value, name)| (Value::Bool(*value), (*name).into())).collect();
            property
        };
        let asked = |property: &Property, role, name: &str, own: Option<Confirm>| {
            let confirmation = Confirmation { how: own, ..Confirmation::default() };
            let action = Action {
                name: name.into(),
                role,
                feedback: Evidence::Firmware,
                expected_ms: 100,
                repeatable: false,
                confirmation,
            };
            let (properties, actions) = (vec![property.clone()], vec![action]);
            let (exclusive, labels) = (Vec::new(), Vec::new());
            let mut all = Description { properties, actions, exclusive, labels, level: 2 };
            all.confirm_actions_as_properties();
            let action = all.actions.remove(0);
            (action.needs_confirmation(), action.confirmation.press.is_some())
        };
        let (press, both) = (Some(Confirm::Press), [(true, "pulse"), (false, "pulse")]);
        let garage = by_word(press, Role::Door, &both);
        for role in [Role::Other, Role::Door, Role::Light] {
            assert_eq!(asked(&garage, role, "pulse", None), (press, true), "{role:?}");
        }
        assert_eq!(asked(&garage, Role::Door, "stop", None).0, None, "stopping never is");
        assert_eq!(asked(&garage, Role::Other, "pulse", Some(Confirm::None)).0, None, "the owner's word on it counts");
        assert_eq!(asked(&garage, Role::Other, "ring", None).0, None, "it moves nothing of it");
        let silent = by_word(None, Role::Door, &both);
        assert_eq!(asked(&silent, Role::Other, "pulse", None).0, Some(Confirm::Ask));
        let lock = by_word(press, Role::Lock, &[(true, "bolt"), (false, "draw")]);
        assert_eq!(asked(&lock, Role::Other, "bolt", None).0, None, "locking is safe");
        assert_eq!(asked(&lock, Role::Other, "draw", None), (press, true));
        let plain = by_word(press, Role::Lock, &[]);
        assert_eq!(asked(&plain, Role::Lock, "unlock", None), (press, true), "as the lock");
        let weaker = by_word(Some(Confirm::None), Role::Lock, &[]);
        assert_eq!(asked(&weaker, Role::Lock, "unlock", None).0, Some(Confirm::Ask), "none was said of the property");
    }

    #[test]
    fn s7_2_what_has_a_role_that_this_version_does_not_know_is_asked_about_unless_its_owner_says_otherwise() {
        let yes = Value::Bool(true);
        let asked = |how| {
            let mut property = property(Role::Other, Kind::Bool);
            property.terms.confirmation = Confirmation { how, strange_role: true, press: None };
            property.confirmation(Movement::To(&yes), None)
        };
        assert_eq!(asked(None), Some(Confirm::Ask));
        assert_eq!((asked(Some(Confirm::None)), asked(Some(Confirm::Press))), (None, Some(Confirm::Press)));
    }

    #[test]
    fn s7_2_an_action_goes_by_its_role_and_stopping_is_never_asked_about() {
        let action = |role, name: &str| {
            let action = Action {
                name: name.into(),
                role,
                feedback: Evidence::Firmware,
                expected_ms: 100,
                repeatable: false,
                confirmation: Confirmation::default(),
            };
            action.needs_confirmation()
        };
        assert_eq!(action(Role::Door, "pulse"), Some(Confirm::Ask));
        assert_eq!((action(Role::Door, "stop"), action(Role::Lock, "lock")), (None, None));
        assert_eq!((action(Role::Lock, "unlock"), action(Role::Other, "ring")), (Some(Confirm::Ask), None));
    }
}
