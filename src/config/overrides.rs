//! The owner's word on properties, instead of what the device says itself.

use super::{Config, PropertySettings};
use crate::property::{Confirmation, Description, DeviceId, Evidence, Property, Verify};

/// How long a measurement may take to show what it must, if the owner does not say so, milliseconds: a power meter that
/// reports each second needs two (semantics 3.10).
const VERIFY_WITHIN_MS: u32 = 2_000;

impl Config {
    /// A device's description with the owner's settings put over it; what is said of a name counts for the property and for
    /// the action of that name. The evidence required may be lowered, never raised
    /// beyond what the device offers, and never below `firmware` (semantics 3.5).
    pub fn overridden(&self, device: &DeviceId, description: &Description) -> Description {
        let mut description = description.clone();
        for property in &mut description.properties {
            if let Some(owner) = self.property(device, &property.name) {
                put_over(property, owner);
                if let Some(verify) = &mut property.terms.verify {
                    verify.sensitive = self.property(&verify.device, &verify.property).is_some_and(|p| p.sensitive);
                }
            }
        }
        for action in &mut description.actions {
            if let Some(owner) = self.property(device, &action.name) {
                action.confirmation = confirmation(owner, &action.confirmation);
            }
        }
        description.confirm_actions_as_properties();
        description
    }
}

fn confirmation(owner: &PropertySettings, said: &Confirmation) -> Confirmation {
    let press = owner.press_with.as_ref().map(|button| (button.device.clone(), button.property.clone()));
    Confirmation { how: owner.confirm, press, strange_role: said.strange_role }
}

fn put_over(property: &mut Property, owner: &PropertySettings) {
    if let Some(stable_ms) = owner.stable_ms {
        property.stable_ms = stable_ms;
    }
    if let Some(expected_ms) = owner.expected_ms {
        property.expected_ms = expected_ms;
    }
    if let Some(class) = owner.class {
        property.class = class;
    }
    let terms = &mut property.terms;
    terms.predicate = owner.predicate;
    terms.required = owner.required_evidence.map(|required| required.max(Evidence::Firmware));
    terms.accepted = owner.accepted.is_some();
    terms.confirmation = confirmation(owner, &terms.confirmation);
    terms.sensitive = owner.sensitive;
    if let (Some(sensor), Some(expect)) = (&owner.verify_with, &owner.verify_expect) {
        terms.verify = Some(Verify {
            device: sensor.device.clone(),
            property: sensor.property.clone(),
            expect: expect.0.clone(),
            within_ms: owner.verify_within_ms.unwrap_or(VERIFY_WITHIN_MS),
            sensitive: false,
        });
    }
    let by_action = owner.by_action.iter().flat_map(|by| &by.0);
    // A value that the property cannot have is brought about by nothing.
    let fits = by_action.filter_map(|(value, action)| Some((property.read(value).ok()?, action.as_str().into())));
    property.terms.by_action = fits.collect();
    property.settable |= !property.terms.by_action.is_empty();
}
