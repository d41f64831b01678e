//! Requests about bearer tokens, carried out.

use super::{Request, Response, TokenInfo, chain};
use crate::{
    data::{Secret, Token, Tokens, endpoint_name},
    names::Lang,
};

/// Carries out a request about tokens: the same for a running hub and for a command on a folder where none runs. `now` is
/// the time, RFC 3339. `None` for other requests. Blocks on the disk.
pub fn on_tokens(tokens: &Tokens, now: &str, request: &Request) -> Option<Response> {
    let result = match request {
        Request::TokenAdd { name, devices, read, language } => {
            add(tokens, now, name, (devices.clone(), read.clone()), language.as_deref())
        }
        Request::TokenList => Ok(Response::Tokens { tokens: tokens.list().iter().map(info).collect() }),
        Request::TokenRevoke { name } => match tokens.revoke(name) {
            Ok(()) => Ok(Response::Removed { device: name.clone() }),
            Err(error) => Err(chain(&error)),
        },
        Request::DeviceAdd { .. }
        | Request::DeviceList
        | Request::DeviceRotate { .. }
        | Request::DeviceRemove { .. }
        | Request::Set { .. }
        | Request::EndpointAdd { .. }
        | Request::EndpointList
        | Request::EndpointTest { .. }
        | Request::EndpointRemove { .. }
        | Request::AccountAdd { .. }
        | Request::AccountList
        | Request::AccountAllow { .. }
        | Request::AccountRotate { .. }
        | Request::AccountRemove { .. }
        | Request::Dispute { .. }
        | Request::Backup { .. } => return None,
    };
    Some(result.unwrap_or_else(|message| Response::Error { message }))
}

fn add(
    tokens: &Tokens,
    now: &str,
    name: &str,
    (devices, read): (Option<Vec<String>>, Option<Vec<String>>),
    language: Option<&str>,
) -> Result<Response, String> {
    let allowed = || format!("{name:?} is no name of a token: 1 to 32 of a-z, 0-9, _ and - are allowed");
    let known = endpoint_name(name).map_err(|_| allowed())?;
    let language = match language {
        None => None,
        Some("en") => Some(Lang::En),
        Some("zh") => Some(Lang::Zh),
        Some(other) => return Err(format!("{other:?} is no language: en or zh is allowed")),
    };
    let token = Token { name: known, devices, read, language, created: now.to_owned() };
    let made: Secret = tokens.add(token.clone()).map_err(|error| chain(&error))?;
    Ok(Response::Token { info: Box::new(info(&token)), token: made })
}

fn info(token: &Token) -> TokenInfo {
    TokenInfo {
        name: token.name.to_string(),
        devices: token.devices.clone(),
        read: token.read.clone(),
        language: token.language.map(|lang| if lang == Lang::Zh { "zh" } else { "en" }.to_owned()),
        created: token.created.clone(),
        ..TokenInfo::default()
    }
}
