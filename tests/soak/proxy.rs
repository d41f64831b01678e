//! A bad network between devices and hub: loses, delays and repeats whole MQTT packets in both directions, and cuts lines.
//!
//! It knows where a packet ends (MQTT 5, 1.5.5 and 2.1) and what kind it is, no more. Within one connection order is kept, as
//! TCP keeps it; a packet that is lost is one that a broken end never wrote.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    sync::Notify,
};

use crate::chance::Chance;

/// Kinds of packets (MQTT 5, table 2-1). The others open and close a connection: losing them is a line that is cut.
const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;

/// DUP, and the two bits of QoS (MQTT 5, 3.3.1).
const DUP: u8 = 0b1000;
const QOS: u8 = 0b0110;

/// Above what the hub takes or sends (`mqtt.packet_bytes_max`); only a mistake meets it.
const PACKET_BYTES_MAX: usize = 1_048_576;

/// How bad the network is at present.
#[derive(Default)]
pub(crate) struct Weather {
    pub(crate) lost_permille: AtomicU64,
    pub(crate) twice_permille: AtomicU64,
    /// Each packet of a fifth of them waits so long at most.
    pub(crate) delay_max_ms: AtomicU64,
}

/// What happened to packets.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) packets: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) twice: AtomicU64,
    pub(crate) delayed: AtomicU64,
    pub(crate) cut: AtomicU64,
}

struct Shared {
    weather: Weather,
    counted: Counted,
    cut: Notify,
    chance: Mutex<Chance>,
}

/// Where devices connect; what it takes goes on to the hub, whichever process that is.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    pub(crate) async fn start(seed: u64, hub: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            weather: Weather::default(),
            counted: Counted::default(),
            cut: Notify::new(),
            chance: Mutex::new(Chance::new(seed)),
        });
        let of_all = shared.clone();
        tokio::spawn(async move {
            while let Ok((device, _)) = listener.accept().await {
                let shared = of_all.clone();
                tokio::spawn(async move {
                    // A hub that is not there is a connection that ends at once.
                    let Ok(hub) = TcpStream::connect(hub).await else { return };
                    let _small_packets_at_once = (device.set_nodelay(true), hub.set_nodelay(true));
                    let ((from_device, to_device), (from_hub, to_hub)) = (device.into_split(), hub.into_split());
                    let cut = shared.cut.notified();
                    tokio::select! {
                        _ended = carry(from_device, to_hub, &shared) => {}
                        _ended = carry(from_hub, to_device, &shared) => {}
                        () = cut => {
                            shared.counted.cut.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        Self { address, shared }
    }

    pub(crate) fn weather(&self) -> &Weather {
        &self.shared.weather
    }

    pub(crate) fn counted(&self) -> &Counted {
        &self.shared.counted
    }

    /// Ends all connections without a goodbye.
    pub(crate) fn cut(&self) {
        self.shared.cut.notify_waiters();
    }

    /// A network that is well, on lines that have lost nothing.
    pub(crate) fn clear(&self) {
        let Weather { lost_permille, twice_permille, delay_max_ms } = self.weather();
        for bad in [lost_permille, twice_permille, delay_max_ms] {
            bad.store(0, Ordering::Relaxed);
        }
        self.cut();
    }
}

async fn carry(from: OwnedReadHalf, mut to: OwnedWriteHalf, shared: &Shared) -> io::Result<()> {
    let mut from = BufReader::new(from);
    loop {
        let mut packet = whole(&mut from).await?;
        shared.counted.packets.fetch_add(1, Ordering::Relaxed);
        let (delay, times) = shared.fate(packet[0] >> 4);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        for _ in 0..times {
            to.write_all(&packet).await?;
            if packet[0] & QOS != 0 {
                packet[0] |= DUP;
            }
        }
    }
}

impl Shared {
    /// How long a packet of this kind waits, and how often it arrives.
    fn fate(&self, kind: u8) -> (Duration, u8) {
        if kind != PUBLISH && kind != PUBACK {
            return (Duration::ZERO, 1);
        }
        let Weather { lost_permille, twice_permille, delay_max_ms } = &self.weather;
        let (lost, twice) = (lost_permille.load(Ordering::Relaxed), twice_permille.load(Ordering::Relaxed));
        let delay_max_ms = delay_max_ms.load(Ordering::Relaxed);
        let mut chance = self.chance.lock().unwrap();
        let delay = if delay_max_ms > 0 && chance.one_in(5) { chance.ms(1..delay_max_ms + 1) } else { Duration::ZERO };
        if !delay.is_zero() {
            self.counted.delayed.fetch_add(1, Ordering::Relaxed);
        }
        if chance.below(1_000) < lost {
            self.counted.lost.fetch_add(1, Ordering::Relaxed);
            return (Duration::ZERO, 0);
        }
        if kind == PUBLISH && chance.below(1_000) < twice {
            self.counted.twice.fetch_add(1, Ordering::Relaxed);
            return (delay, 2);
        }
        (delay, 1)
    }
}

/// One packet with its fixed header.
async fn whole(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut packet = vec![from.read_u8().await?];
    let (mut length, mut shift) = (0_usize, 0);
    loop {
        let byte = from.read_u8().await?;
        packet.push(byte);
        length |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
        if shift > 21 {
            return Err(io::Error::other("a remaining length of more than four bytes"));
        }
    }
    if length > PACKET_BYTES_MAX {
        return Err(io::Error::other("a packet that nobody sends"));
    }
    let header = packet.len();
    packet.resize(header + length, 0);
    from.read_exact(&mut packet[header..]).await?;
    Ok(packet)
}

#[tokio::test]
async fn a_packet_is_taken_whole_with_a_remaining_length_of_more_bytes_than_one() {
    let mut bytes = vec![0x32, 0xc8, 0x01];
    bytes.extend([7; 200]);
    let all = [bytes.clone(), vec![0xc0, 0x00]].concat();
    let mut from = all.as_slice();
    assert_eq!(whole(&mut from).await.unwrap(), bytes);
    assert_eq!(whole(&mut from).await.unwrap(), [0xc0, 0x00]);
    assert!(whole(&mut from).await.is_err(), "there is no more");
    assert!(whole(&mut [0x30, 0xff, 0xff, 0xff, 0xff, 0x01].as_slice()).await.is_err(), "five bytes of length");
}
