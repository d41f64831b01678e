//! Requests about service accounts, carried out.

use super::{AccountInfo, Request, Response, chain};
use crate::{
    data::{Account, Accounts, Secret},
    property::DeviceId,
    topics::Rights,
};

/// Carries out a request about service accounts: the same for a running hub, which ends connections afterwards, and for a command
/// on a folder where none runs. `mqtt` is where they connect. `None` for other requests. Blocks on the disk, and with a chosen
/// password for the time of its hash.
pub fn on_accounts(accounts: &Accounts, mqtt: &str, request: &Request) -> Option<Response> {
    let result = match request {
        Request::AccountAdd { name, read, write, password } => {
            add(accounts, mqtt, name, (read, write), password.as_ref())
        }
        Request::AccountAllow { name, read, write } => allow(accounts, mqtt, name, read, write),
        Request::AccountRotate { name, password } => rotate(accounts, mqtt, name, password.as_ref()),
        Request::AccountRemove { name } => remove(accounts, name),
        Request::AccountList => Ok(Response::Accounts { accounts: accounts.list().iter().map(info).collect() }),
        Request::DeviceAdd { .. }
        | Request::DeviceList
        | Request::DeviceRotate { .. }
        | Request::DeviceRemove { .. }
        | Request::Set { .. }
        | Request::EndpointAdd { .. }
        | Request::EndpointList
        | Request::EndpointTest { .. }
        | Request::EndpointRemove { .. }
        | Request::TokenAdd { .. }
        | Request::TokenList
        | Request::TokenRevoke { .. }
        | Request::Dispute { .. }
        | Request::Backup { .. } => return None,
    };
    Some(result.unwrap_or_else(|message| Response::Error { message }))
}

fn add(
    accounts: &Accounts,
    mqtt: &str,
    name: &str,
    (read, write): (&[String], &[String]),
    password: Option<&Secret>,
) -> Result<Response, String> {
    let name = named(name)?;
    let rights = Rights::new(read, write).map_err(|error| error.to_string())?;
    let made = accounts.add(&name, rights, password).map_err(|error| chain(&error))?;
    told(accounts, mqtt, &name, made)
}

fn allow(accounts: &Accounts, mqtt: &str, name: &str, read: &[String], write: &[String]) -> Result<Response, String> {
    let name = named(name)?;
    if read.is_empty() && write.is_empty() {
        return Err("nothing is to be allowed; give --read or --write with a pattern, as in homeassistant/#".to_owned());
    }
    let known = accounts.get(&name).ok_or_else(|| chain(&crate::data::Error::UnknownAccount(name.clone())))?;
    let rights = known.rights.with(read, write).map_err(|error| error.to_string())?;
    accounts.allow(&name, rights).map_err(|error| chain(&error))?;
    told(accounts, mqtt, &name, None)
}

fn rotate(accounts: &Accounts, mqtt: &str, name: &str, password: Option<&Secret>) -> Result<Response, String> {
    let name = named(name)?;
    let made = accounts.rotate(&name, password).map_err(|error| chain(&error))?;
    told(accounts, mqtt, &name, made)
}

fn remove(accounts: &Accounts, name: &str) -> Result<Response, String> {
    let name = named(name)?;
    accounts.remove(&name).map_err(|error| chain(&error))?;
    Ok(Response::Removed { device: name.to_string() })
}

fn told(accounts: &Accounts, mqtt: &str, name: &DeviceId, password: Option<Secret>) -> Result<Response, String> {
    let account = accounts.get(name).ok_or_else(|| format!("{name} was removed at the same moment"))?;
    Ok(Response::Account { account: info(&account), password, mqtt: mqtt.to_owned() })
}

fn named(name: &str) -> Result<DeviceId, String> {
    DeviceId::new(name)
        .map_err(|_| format!("{name:?} is no name of an account: 1 to 32 of a-z, 0-9, _ and - are allowed"))
}

fn info(account: &Account) -> AccountInfo {
    let owned = |pattern: &str| pattern.to_owned();
    AccountInfo {
        name: account.name.to_string(),
        read: account.rights.read().map(owned).collect(),
        write: account.rights.write().map(owned).collect(),
        chosen: account.chosen,
        connections: None,
    }
}
