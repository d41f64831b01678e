//! Leave to do one thing: what callers hand to the fleet, which takes nothing else.

use super::{Right, Rights};
use crate::{
    names::Thing,
    property::{DeviceId, PropertyName, Value},
    twin::{
        wish::{ActionName, Wish},
        words::Refusal,
    },
};

/// What no property is called (a name has 1 to 32 bytes): a wish on it is never sent.
const NO_PROPERTY: &str = "";

/// Something that its caller may do with a device. Only [`Rights`] make one, so that no way from a caller to a device leads
/// past its policy; what is done without a caller's policy is done with [`Rights::everything`], and says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Permitted<T> {
    device: DeviceId,
    what: T,
}

/// To look at the state of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look;

/// A principal may not do this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The thing does not exist for it.
    #[error("no such device: {thing}")]
    Unseen {
        /// What was meant.
        thing: Thing,
    },
    /// It may only look at it.
    #[error("{property} may only be read")]
    ReadOnly {
        /// Which property or action.
        property: PropertyName,
    },
}

impl<T> Permitted<T> {
    /// The device.
    pub fn device(&self) -> &DeviceId {
        &self.device
    }

    /// What may be done.
    pub fn what(&self) -> &T {
        &self.what
    }

    /// Both, to be carried out.
    pub fn into_parts(self) -> (DeviceId, T) {
        (self.device, self.what)
    }
}

impl Rights {
    /// Leave to make a wish true.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn set(&self, device: &DeviceId, wish: Wish) -> Result<Permitted<Wish>, Denied> {
        match self.of(device, Some(&wish.property)) {
            Right::Write => Ok(Permitted { device: device.clone(), what: wish }),
            Right::Read => Err(Denied::ReadOnly { property: wish.property }),
            Right::None => {
                Err(Denied::Unseen { thing: Thing { device: device.clone(), property: Some(wish.property) } })
            }
        }
    }

    /// Leave to have a device do something; only who may move the whole of it has that.
    ///
    /// # Errors
    /// [`Denied`].
    pub fn run(&self, device: &DeviceId, action: ActionName) -> Result<Permitted<ActionName>, Denied> {
        match self.of(device, None) {
            Right::Write => Ok(Permitted { device: device.clone(), what: action }),
            Right::Read => Err(Denied::ReadOnly { property: action }),
            Right::None => Err(Denied::Unseen { thing: Thing::device(device) }),
        }
    }

    /// Leave to look at a thing; of a device, only what of it may be read is to be told on.
    ///
    /// # Errors
    /// [`Denied::Unseen`].
    pub fn look(&self, thing: &Thing) -> Result<Permitted<Look>, Denied> {
        match self.to(thing) {
            Right::Read | Right::Write => Ok(Permitted { device: thing.device.clone(), what: Look }),
            Right::None => Err(Denied::Unseen { thing: thing.clone() }),
        }
    }

    /// Leave to wait for a device that has not greeted yet: a wish on a property that cannot be, so nothing is ever sent.
    ///
    /// # Errors
    /// [`Denied::Unseen`].
    pub fn wait_for(&self, thing: &Thing) -> Result<Permitted<Wish>, Denied> {
        let Permitted { device, what: Look } = self.look(thing)?;
        Ok(Permitted { device, what: Wish::to(NO_PROPERTY, Value::Bool(true)) })
    }
}

impl Denied {
    /// As it is answered: what is not seen is as good as unknown.
    pub fn refusal(self) -> Refusal {
        match self {
            Self::Unseen { thing } => Refusal::UnknownDevice { asked: thing.to_string(), near: Vec::new() },
            Self::ReadOnly { property } => Refusal::Forbidden { property },
        }
    }
}
