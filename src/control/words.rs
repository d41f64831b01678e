//! What is said over the control socket.

use std::path::PathBuf;

use crate::data::Secret;

/// What the owner asks of a running hub.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Give a new device a password.
    DeviceAdd {
        /// Its id.
        name: String,
    },
    /// Which devices have a password.
    DeviceList,
    /// Give a device another password.
    DeviceRotate {
        /// Its id.
        name: String,
    },
    /// Take a device's password away.
    DeviceRemove {
        /// Its id.
        name: String,
    },
    /// Make a wish true, as a tool call does.
    Set {
        /// An id, or a name that stands for one device.
        device: String,
        /// The property.
        property: String,
        /// The value: `true`, a number, or a text.
        value: serde_json::Value,
    },
    /// Add an access point and dial it.
    EndpointAdd {
        /// What its owner calls it.
        name: String,
        /// Where it is, token and all.
        url: Secret,
    },
    /// Which access points there are, and how they are doing.
    EndpointList,
    /// Look closely at one.
    EndpointTest {
        /// Which one.
        name: String,
    },
    /// Remove one that was added by command.
    EndpointRemove {
        /// Which one.
        name: String,
    },
    /// Make a bearer token for HTTP clients.
    TokenAdd {
        /// What its owner calls it.
        name: String,
        /// What it may look at and move.
        devices: Option<Vec<String>>,
        /// What it may only look at.
        read: Option<Vec<String>>,
        /// `en` or `zh`; else the hub's.
        language: Option<String>,
    },
    /// Which tokens there are.
    TokenList,
    /// Take a token back.
    TokenRevoke {
        /// Which one.
        name: String,
    },
    /// Make a service account.
    AccountAdd {
        /// Its user name.
        name: String,
        /// The topics that it may read, as MQTT filters.
        read: Vec<String>,
        /// The topics that it may write, as MQTT filters.
        write: Vec<String>,
        /// The password that was chosen for it; else one is made.
        password: Option<Secret>,
    },
    /// Which service accounts there are.
    AccountList,
    /// Let a service account read and write more topics.
    AccountAllow {
        /// Its user name.
        name: String,
        /// More topics that it may read, as MQTT filters.
        read: Vec<String>,
        /// More topics that it may write, as MQTT filters.
        write: Vec<String>,
    },
    /// Give a service account another password.
    AccountRotate {
        /// Its user name.
        name: String,
        /// The password that was chosen for it; else one is made.
        password: Option<Secret>,
    },
    /// Remove a service account.
    AccountRemove {
        /// Its user name.
        name: String,
    },
    /// What was said to be done was not.
    Dispute {
        /// The id of an operation, or a device: then the latest operation on it.
        what: String,
        /// The owner's words.
        note: Option<String>,
    },
    /// Copy all that the hub knows to one file.
    Backup {
        /// Where to, an absolute path; nothing may be there yet.
        to: PathBuf,
    },
}

/// What the hub answers.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "response", rename_all = "snake_case")]
pub enum Response {
    /// To [`Request::DeviceAdd`] and [`Request::DeviceRotate`].
    Device {
        /// Its id.
        device: String,
        /// The password, told this once.
        password: Secret,
        /// Address and port where the device connects.
        mqtt: String,
    },
    /// To [`Request::DeviceList`].
    Devices {
        /// Ordered by id.
        devices: Vec<Listed>,
    },
    /// To [`Request::AccountAdd`], [`Request::AccountAllow`] and [`Request::AccountRotate`].
    Account {
        /// The account.
        account: AccountInfo,
        /// The password that was made for it, told this once; `None`: it was chosen, or stays.
        password: Option<Secret>,
        /// Address and port where it connects.
        mqtt: String,
    },
    /// To [`Request::AccountList`].
    Accounts {
        /// Ordered by name.
        accounts: Vec<AccountInfo>,
    },
    /// To [`Request::DeviceRemove`], [`Request::EndpointRemove`], [`Request::TokenRevoke`] and [`Request::AccountRemove`].
    Removed {
        /// Its id or name.
        device: String,
    },
    /// To [`Request::Set`].
    Answer {
        /// Whether it is confirmed (semantics 8.4); nothing else is a success.
        success: bool,
        /// The whole answer, as a tool call gives it.
        answer: serde_json::Value,
    },
    /// To [`Request::EndpointAdd`], [`Request::EndpointTest`] and, with one that is no more, [`Request::EndpointRemove`].
    Endpoint {
        /// The access point.
        endpoint: Box<EndpointInfo>,
        /// What was found, in sentences; the last one says what to do.
        found: Vec<String>,
        /// Whether calls can come through it, as far as is known.
        good: bool,
    },
    /// To [`Request::EndpointList`].
    Endpoints {
        /// Ordered by name.
        endpoints: Vec<EndpointInfo>,
    },
    /// To [`Request::TokenAdd`].
    Token {
        /// What is known of it.
        info: Box<TokenInfo>,
        /// The token, told this once.
        token: Secret,
    },
    /// To [`Request::TokenList`].
    Tokens {
        /// Ordered by name.
        tokens: Vec<TokenInfo>,
    },
    /// To [`Request::Dispute`].
    Disputed {
        /// What is disputed.
        operation: Option<String>,
        /// Its device.
        device: String,
        /// When it was called for.
        at: String,
        /// What was said.
        say: String,
    },
    /// To [`Request::Backup`].
    BackedUp,
    /// The request could not be carried out, and nothing has changed.
    Error {
        /// What was wrong, and what is allowed.
        message: String,
    },
}

/// One device of a list.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Listed {
    /// Its id.
    pub device: String,
    /// Its presence (semantics 5.5), where a running hub can tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub presence: Option<String>,
}

/// One service account, as its owner sees it. Nothing of it is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct AccountInfo {
    /// Its user name.
    pub name: String,
    /// The topics that it may read.
    pub read: Vec<String>,
    /// The topics that it may write.
    pub write: Vec<String>,
    /// Whether its password was chosen by somebody.
    pub chosen: bool,
    /// Its connections, where a running hub can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connections: Option<usize>,
}

/// One bearer token, as its owner sees it. Nothing of it is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct TokenInfo {
    /// What its owner calls it.
    pub name: String,
    /// What it may look at and move; `None`: everything, or with `read`, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<Vec<String>>,
    /// What it may only look at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<String>>,
    /// `en` or `zh`; `None`: the hub's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// When it was made, RFC 3339.
    pub created: String,
    /// When it last called, RFC 3339, where a running hub can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_call: Option<String>,
    /// What of its lists selects nothing now, where a running hub can tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
}

/// One access point, as its owner sees it. Nothing of it is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct EndpointInfo {
    /// What its owner calls it.
    pub name: String,
    /// Where it is, without the token.
    pub address: String,
    /// `official` or `relay`.
    pub profile: String,
    /// Whose token it is.
    pub agent: String,
    /// Until when the token holds, seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// When it was added by command, RFC 3339; `None`: it is in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<String>,
    /// The language of its tools and answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// How it is doing: `up`, `waiting`, `dialling`, `refused`; `None`: no hub runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// How the last connection, or the last try, ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_end: Option<String>,
    /// The close code of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_code: Option<u16>,
    /// The tools that went over last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Calls since the hub started.
    pub calls: u64,
    /// When the last call came in, RFC 3339, also before the hub started; `None`: none that is remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_call: Option<String>,
}
