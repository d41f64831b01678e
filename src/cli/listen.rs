//! Listening on an address, with an error that helps whoever finds it taken.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

/// Who usually sits on a port that somebody wants.
const USUAL: &[(u16, &str)] = &[
    (1883, "Mosquitto, or the broker of Zigbee2MQTT or Home Assistant"),
    (8080, "the page of Zigbee2MQTT, Jenkins, a proxy or another web server"),
    (80, "a web server"),
];

/// Why an address cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {}", self.hint())]
pub struct Error {
    /// The address.
    pub address: SocketAddr,
    /// The flag that sets it.
    pub flag: &'static str,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl Error {
    /// Whether somebody else listens there.
    pub fn is_taken(&self) -> bool {
        self.source.kind() == io::ErrorKind::AddrInUse
    }

    fn hint(&self) -> String {
        let (port, flag) = (self.address.port(), self.flag);
        if self.is_taken() {
            let usual = USUAL.iter().find(|(usual, _)| *usual == port);
            let who = usual.map(|(_, who)| format!(", usually by {who}")).unwrap_or_default();
            let free = SocketAddr::new(self.address.ip(), if port == u16::MAX { 0 } else { port + 1 });
            return format!("port {port} is taken{who}; stop that, or take another address, say {flag} {free}");
        }
        let kind = self.source.kind();
        if kind == io::ErrorKind::AddrNotAvailable {
            format!("this machine has no such address; give one that it has with {flag}")
        } else if kind == io::ErrorKind::PermissionDenied {
            format!("ports below 1024 need a permission; take a higher one with {flag}")
        } else {
            format!("give another address with {flag}")
        }
    }
}

/// Listens on an address that `flag` sets; port 0 takes a free one. The listener does not block, as
/// `tokio::net::TcpListener::from_std` wants it.
///
/// # Errors
/// [`Error`], which names the address, the flag, and who usually sits there.
pub fn listen(address: SocketAddr, flag: &'static str) -> Result<TcpListener, Error> {
    let error = |source| Error { address, flag, source };
    let listener = TcpListener::bind(address).map_err(error)?;
    listener.set_nonblocking(true).map_err(error)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_names_the_address_the_flag_and_the_usual_owner() {
        let first = listen("127.0.0.1:0".parse().expect("an address"), "--mqtt").expect("a free port");
        let address = first.local_addr().expect("it has one");
        let error = listen(address, "--mqtt").expect_err("taken");
        assert!(error.is_taken());
        assert!(error.to_string().contains(&format!("{address}: port {} is taken", address.port())), "{error}");
        assert!(error.to_string().contains("--mqtt 127.0.0.1:"), "{error}");
        for (port, who) in [(1883, "Mosquitto"), (8080, "Zigbee2MQTT")] {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let error = Error { address, flag: "--http", source: io::ErrorKind::AddrInUse.into() };
            assert!(error.to_string().contains(who), "{error}");
        }
    }

    #[test]
    fn an_address_of_another_machine_is_not_called_taken() {
        // 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
        let error = listen("192.0.2.1:0".parse().expect("an address"), "--mqtt").expect_err("not ours");
        assert!(!error.is_taken());
    }
}
