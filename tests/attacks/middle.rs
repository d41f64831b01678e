//! Somebody in the network between a device and the hub: sees what passes without TLS, and puts in what was sent before.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    sync::Mutex as Held,
};

/// What went to the device, and the way to it.
#[derive(Clone, Default)]
pub(crate) struct Middle {
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
    device: Arc<Held<Option<OwnedWriteHalf>>>,
}

impl Middle {
    /// Stands before the hub; where the device is to dial.
    pub(crate) async fn start(hub: SocketAddr) -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (middle, address) = (Self::default(), listener.local_addr().unwrap());
        let theirs = middle.clone();
        tokio::spawn(async move {
            loop {
                let (device, _) = listener.accept().await.unwrap();
                tokio::spawn(theirs.clone().pass(device, hub));
            }
        });
        (middle, address)
    }

    async fn pass(self, device: TcpStream, hub: SocketAddr) {
        let hub = TcpStream::connect(hub).await.unwrap();
        for socket in [&device, &hub] {
            socket.set_nodelay(true).unwrap();
        }
        let ((mut from_device, to_device), (mut from_hub, mut to_hub)) = (device.into_split(), hub.into_split());
        *self.device.lock().await = Some(to_device);
        tokio::spawn(async move { tokio::io::copy(&mut from_device, &mut to_hub).await });
        let mut unread = Vec::new();
        while from_hub.read_buf(&mut unread).await.is_ok_and(|bytes| bytes > 0) {
            // Whole packets only, so that what is put in comes between two. Those of commands are below 16 KiB.
            while let Some(packet) = whole(&mut unread) {
                if let Some(device) = &mut *self.device.lock().await {
                    let _gone_already = device.write_all(&packet).await;
                }
                self.seen.lock().unwrap().push(packet);
            }
        }
    }

    /// The publishes that went to the device and have all of these texts in them.
    pub(crate) fn captured(&self, texts: &[&str]) -> Vec<Vec<u8>> {
        let seen = self.seen.lock().unwrap();
        let wanted = |packet: &&Vec<u8>| {
            let text = String::from_utf8_lossy(packet);
            packet[0] >> 4 == 3 && texts.iter().all(|part| text.contains(part))
        };
        seen.iter().filter(wanted).cloned().collect()
    }

    /// Sends it to the device as if the hub did.
    pub(crate) async fn send(&self, packet: &[u8]) {
        self.device.lock().await.as_mut().unwrap().write_all(packet).await.unwrap();
    }
}

/// Cuts one packet off the front.
fn whole(unread: &mut Vec<u8>) -> Option<Vec<u8>> {
    let first = usize::from(*unread.get(1)?);
    let (length, head) = match first {
        0..0x80 => (first, 2),
        _ => (first & 0x7F | usize::from(*unread.get(2)?) << 7, 3),
    };
    (unread.len() >= head + length).then(|| unread.drain(..head + length).collect())
}
