//! The tools as a model sees them: names, texts, schemas. The texts are those of the answers document.
//!
//! Schemas are made by hand: flat, without `$ref`, `$defs`, `oneOf` and `additionalProperties`, which relays in front
//! of models drop or dislike. A tool without anything to act on is not listed. A parameter is described where it comes
//! first and bare in the tools behind it. Pure.

mod figures;
mod schema;
mod texts;

use std::sync::Arc;

use rmcp::model::{Tool as McpTool, ToolAnnotations};

use self::schema::Lists;
use super::house::House;

pub use texts::instructions;

/// The tools that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `find_devices`
    FindDevices,
    /// `get_device_state`
    GetDeviceState,
    /// `switch_device`
    SwitchDevice,
    /// `set_device_level`
    SetDeviceLevel,
    /// `set_device_option`
    SetDeviceOption,
    /// `run_device_action`
    RunDeviceAction,
    /// `activate_scene`
    ActivateScene,
    /// `check_operation`
    CheckOperation,
    /// `confirm_operation`
    ConfirmOperation,
    /// `ping`
    Ping,
}

impl Tool {
    /// All tools, in the order of the catalogue.
    pub const ALL: &[Self] = &[
        Self::FindDevices,
        Self::GetDeviceState,
        Self::SwitchDevice,
        Self::SetDeviceLevel,
        Self::SetDeviceOption,
        Self::RunDeviceAction,
        Self::ActivateScene,
        Self::CheckOperation,
        Self::ConfirmOperation,
        Self::Ping,
    ];

    /// The name in calls and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FindDevices => "find_devices",
            Self::GetDeviceState => "get_device_state",
            Self::SwitchDevice => "switch_device",
            Self::SetDeviceLevel => "set_device_level",
            Self::SetDeviceOption => "set_device_option",
            Self::RunDeviceAction => "run_device_action",
            Self::ActivateScene => "activate_scene",
            Self::CheckOperation => "check_operation",
            Self::ConfirmOperation => "confirm_operation",
            Self::Ping => "ping",
        }
    }

    /// The tool of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|t| t.as_str() == name)
    }

    /// Its parameters.
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::FindDevices => &["room", "query"],
            Self::GetDeviceState => &["device", "fresh"],
            Self::SwitchDevice => &["device", "to", "user_request"],
            Self::SetDeviceLevel => &["device", "property", "level", "how", "user_request"],
            Self::SetDeviceOption => &["device", "property", "option", "user_request"],
            Self::RunDeviceAction => &["device", "action", "user_request"],
            Self::ActivateScene => &["scene", "user_request"],
            Self::CheckOperation => &["device", "operation"],
            Self::ConfirmOperation => &["code"],
            Self::Ping => &[],
        }
    }

    /// Whether there is anything for it to act on.
    fn applies(self, house: &House) -> bool {
        match self {
            Self::FindDevices | Self::Ping => true,
            Self::GetDeviceState => !house.entries().is_empty(),
            Self::SwitchDevice => house.switchable().next().is_some(),
            Self::SetDeviceLevel => house.listed().any(|e| e.levels().next().is_some()),
            Self::SetDeviceOption => house.listed().any(|e| e.options().next().is_some()),
            Self::RunDeviceAction => house.entries().iter().any(|e| e.actions().next().is_some()),
            Self::ActivateScene => !house.scenes().is_empty(),
            Self::ConfirmOperation => house.asks(),
            Self::CheckOperation => {
                let moving = Self::ALL.iter().filter(|tool| !tool.only_reads());
                moving.into_iter().any(|tool| tool.applies(house))
            }
        }
    }

    /// What it would need to be in a catalogue, as the end of "no such tool"; what has not connected yet has nothing.
    pub fn lacks(self) -> &'static str {
        match self {
            Self::FindDevices | Self::Ping => "",
            Self::GetDeviceState => " here: there is no device to look at",
            Self::SwitchDevice => " here: there is nothing that this caller may switch",
            Self::SetDeviceLevel => {
                " here: nothing that this caller may move has a level (brightness, a position, a temperature), as far as devices have \
                 connected yet; on and off take switch_device"
            }
            Self::SetDeviceOption => {
                " here: nothing that this caller may move has options (modes, colours), as far as devices have connected yet; on and off \
                 take switch_device"
            }
            Self::RunDeviceAction => {
                " here: nothing that this caller may move has actions, as far as devices have connected yet"
            }
            Self::ActivateScene => {
                " here: there is no scene of which this caller may move all ([[scene]] in the configuration)"
            }
            Self::ConfirmOperation => {
                " here: nothing is asked about before it moves, as far as devices have connected yet"
            }
            Self::CheckOperation => " here: there is nothing that this caller may move",
        }
    }

    /// Whether it moves nothing.
    pub fn only_reads(self) -> bool {
        match self {
            Self::FindDevices | Self::GetDeviceState | Self::CheckOperation | Self::Ping => true,
            Self::SwitchDevice
            | Self::SetDeviceLevel
            | Self::SetDeviceOption
            | Self::RunDeviceAction
            | Self::ActivateScene
            | Self::ConfirmOperation => false,
        }
    }

    fn annotations(self) -> ToolAnnotations {
        // Nothing here reaches beyond the home, so no world is open; for a tool that only reads the other hints mean nothing.
        // What sets a value is repeatable by nature, except by "up" and "down", and destroys nothing; an
        // action may be anything.
        let annotations = ToolAnnotations::new().open_world(false);
        match self {
            Self::FindDevices | Self::GetDeviceState | Self::CheckOperation | Self::Ping => annotations.read_only(true),
            Self::SwitchDevice | Self::SetDeviceOption | Self::ActivateScene => {
                annotations.read_only(false).destructive(false).idempotent(true)
            }
            Self::SetDeviceLevel => annotations.read_only(false).destructive(false).idempotent(false),
            Self::RunDeviceAction | Self::ConfirmOperation => {
                annotations.read_only(false).destructive(true).idempotent(false)
            }
        }
    }
}

/// The largest `tools` array, bytes of compact JSON: what one relay reads at once. In a house that would need more, lists
/// are dropped, names first: what is said of a tool is worth more than what could be asked for with `find_devices`.
pub const CATALOGUE_BYTES_MAX: usize = 8 * 1024;

/// The `tools` array for a house, at most [`CATALOGUE_BYTES_MAX`].
pub fn tool_list(house: &House) -> Vec<McpTool> {
    let fits = |tools: &Vec<McpTool>| {
        serde_json::to_string(tools).expect("strings and maps with string keys always serialise").len()
            <= CATALOGUE_BYTES_MAX
    };
    let full = tools(house, Lists { names: true, words: true });
    if fits(&full) {
        return full;
    }
    let unnamed = tools(house, Lists { names: false, words: true });
    if fits(&unnamed) { unnamed } else { tools(house, Lists { names: false, words: false }) }
}

fn tools(house: &House, lists: Lists) -> Vec<McpTool> {
    let output = Arc::new(schema::output());
    Tool::ALL
        .iter()
        .filter(|tool| tool.applies(house))
        .map(|tool| {
            McpTool::new(tool.as_str(), texts::description(*tool, house), schema::input(*tool, house, lists))
                .with_annotations(tool.annotations())
                .with_raw_output_schema(output.clone())
        })
        .collect()
}
