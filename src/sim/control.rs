//! Lines of control over a TCP connection on this machine: the same as on standard input, each answered by one JSON line
//! (`{"ok": true}`, `{"error": "..."}`, or the truth). For a test that does not own the process's standard input.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use serde_json::json;

use super::{Error, Handle, Happened, command_line};

/// Longest line, bytes; the rest of a longer one is another line, and not understood.
const LINE_BYTES_MAX: u64 = 1_024;

/// Binds; only loopback, because whoever can connect can break the device.
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, Error> {
    if !address.ip().is_loopback() {
        return Err(Error::Control(address, io::ErrorKind::PermissionDenied.into()));
    }
    TcpListener::bind(address).map_err(|error| Error::Control(address, error))
}

/// Serves one connection after the other, for as long as the process lives.
pub(super) fn serve(listener: TcpListener, handle: Handle) -> Result<(), Error> {
    let address = listener.local_addr().map_err(Error::Start)?;
    handle.world.tell(Happened::Listening(address));
    let serving = move || {
        for stream in listener.incoming().flatten() {
            // Whoever hangs up in the middle has heard enough.
            let _hung_up = talk(&stream, &handle);
        }
    };
    // Nobody waits for this thread: it sits in an accept that nothing can interrupt, and ends with the process.
    thread::Builder::new().name("sim control".to_owned()).spawn(serving).map_err(Error::Start)?;
    Ok(())
}

fn talk(mut stream: &TcpStream, handle: &Handle) -> io::Result<()> {
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if lines.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let answer = match command_line::obey(line.trim(), handle) {
            Ok(None) => json!({"ok": true}),
            Ok(Some(truth)) => command_line::line(&Happened::Truth(truth)),
            Err(error) => json!({"error": error}),
        };
        stream.write_all(format!("{answer}\n").as_bytes())?;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails here says where")]
mod tests {
    use super::*;
    use crate::sim::{Fault, Options, start};

    #[test]
    fn a_connection_switches_faults_and_hears_the_truth() {
        let mut simulator = start(Options::new(([127, 0, 0, 1], 1).into(), "socket", ""));
        let mut events = simulator.events();
        let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        serve(listener, simulator.handle()).unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"fault stuck\ntouch\ntruth\nfly\n").unwrap();
        let lines: Vec<String> = BufReader::new(&stream).lines().take(4).map(Result::unwrap).collect();
        assert_eq!(lines[..2], [r#"{"ok":true}"#, r#"{"ok":true}"#]);
        assert!(lines[2].contains(r#""moves":1"#) && lines[3].contains("error"), "{lines:?}");
        while let Some(happened) = events.blocking_recv() {
            if happened == Happened::Fault(Fault::Stuck) {
                break;
            }
        }
    }

    #[test]
    fn only_this_machine_is_listened_to() {
        assert!(matches!(listen(([0, 0, 0, 0], 0).into()), Err(Error::Control(..))));
    }
}
