//! The owner's word on properties, instead of what the device says itself.

use super::Config;
use crate::property::{Description, DeviceId, Evidence};

impl Config {
    /// A device's description with the owner's settings put over it. The evidence required may be lowered, never raised
    /// beyond what the device offers, and never below `firmware` (semantics 3.5).
    pub fn overridden(&self, device: &DeviceId, description: &Description) -> Description {
        let mut description = description.clone();
        for property in &mut description.properties {
            let Some(owner) = self.property(device, &property.name) else { continue };
            if let Some(stable_ms) = owner.stable_ms {
                property.stable_ms = stable_ms;
            }
            if let Some(expected_ms) = owner.expected_ms {
                property.expected_ms = expected_ms;
            }
            if let Some(required) = owner.required_evidence {
                property.feedback = property.feedback.min(required.max(Evidence::Firmware));
            }
        }
        description
    }
}
