//! The thread of one device: runs that follow each other, connections within a run.

use std::{
    cell::Cell,
    future::{Future, poll_fn},
    io,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, Instant},
};

use embedded_io_adapters::tokio_1::FromTokio;
use tokio::{
    net::{TcpSocket, TcpStream},
    sync::watch,
    time,
};
use truetwin_device::{
    Identity, Machine, Start,
    link::{self, End, Memory, Note},
    machine::Heard,
};

use super::{Control, Fault, Happened, Options, body::Body, line, world::World};

/// The pause after the first loss of a connection; it doubles up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(200);

/// The longest pause: a hub that comes back has its devices within seconds, and a hundred devices do not hammer one that is
/// down.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The pause of a board that greets as fast as it can.
const PAUSE_STORM: Duration = Duration::from_millis(20);

/// How much too fast a clock runs that does.
const FAST: f64 = 1.2;

/// How long dialling may take.
const DIAL: Duration = Duration::from_secs(5);

/// Lives until it is told to stop.
pub(super) async fn live(options: Options, world: Arc<World>, mut control: watch::Receiver<Control>) {
    let mut boots = control.borrow_and_update().boots;
    loop {
        {
            let watched = control.clone();
            let mut run = pin!(run(&options, &world, watched));
            // The run is dropped when the plug is pulled: its socket closes without a goodbye.
            tokio::select! {
                biased;
                () = until(&mut control, |c| c.stop || c.boots != boots) => {}
                () = &mut run => {}
                () = world.live() => {}
            }
        }
        let now = *control.borrow();
        if now.stop || now.boots == boots {
            return;
        }
        boots = now.boots;
    }
}

/// One run of the device, from power on. Ends only if it cannot begin.
async fn run(options: &Options, world: &Arc<World>, mut control: watch::Receiver<Control>) {
    let boot = match token(world.lock().fault) {
        Ok(boot) => boot,
        Err(error) => return world.tell(Happened::Disconnected(format!("no random numbers: {error}"))),
    };
    let own = Clock::new(world);
    let clock = || own.now_ms();
    let mut body = Body::new(world, options);
    let model = format!("sim {}", options.kind);
    let identity = Identity { device: &options.device, model: &model, fw: env!("CARGO_PKG_VERSION") };
    let mut machine = match Machine::new(identity, &boot, Start::Unclean, &mut body) {
        Ok(machine) => machine,
        Err(error) => return world.tell(Happened::Disconnected(format!("no device: {error:?}"))),
    };
    world.tell(Happened::Started { boot });
    let mut memory = Box::new(Memory::new());
    let mut pause = PAUSE_MIN;
    loop {
        let dialled = async {
            until(&mut control, |c| c.fault != Fault::Offline).await;
            dial(options).await
        };
        // While there is no connection the firmware lives all the same.
        let dialled = tokio::select! {
            dialled = dialled => dialled,
            () = firmware_alone(world, link::idle(&mut machine, &mut body, clock)) => return,
        };
        let mut welcomed = false;
        let why = match dialled {
            Err(error) => format!("no connection: {error}"),
            Ok(stream) => {
                let note = |note: Note<'_>| match note {
                    Note::Connected => world.tell(Happened::Connected),
                    Note::Heard(Heard::Welcome, _) => {
                        welcomed = true;
                        world.tell(Happened::Welcomed);
                    }
                    Note::Heard(Heard::Refused | Heard::Error, text) => {
                        world.tell(Happened::Told(String::from_utf8_lossy(text).into_owned()));
                    }
                    Note::Heard(Heard::Command | Heard::Dropped(_), _) => {}
                };
                let password = options.password.as_bytes();
                let (core, wire) = line::wire(stream, world);
                let io = FromTokio::new(core);
                let serving = link::serve(io, password, &mut memory, &mut machine, &mut body, clock, note);
                // The wire first, so that the core finds all that is there when it has its turn; and when it has ended, the
                // core still reads what came before.
                let wire = async {
                    let _ended = wire.await;
                    std::future::pending::<()>().await;
                };
                let connection = async {
                    tokio::select! {
                        biased;
                        () = wire => End::Lost,
                        end = serving => end,
                    }
                };
                match in_turns(world, &mut control, connection).await {
                    Some(end) => reason(end, &options.device),
                    None => "switched off".to_owned(),
                }
            }
        };
        machine.disconnected(clock());
        tracing::debug!(device = options.device, why, "simulated device lost its connection");
        world.tell(Happened::Disconnected(why));
        pause = if welcomed { PAUSE_MIN } else { pause };
        let storm = world.lock().fault == Fault::HelloStorm;
        let rest = if storm { PAUSE_STORM } else { jittered(pause) };
        tokio::select! {
            () = time::sleep(rest) => {}
            () = firmware_alone(world, link::idle(&mut machine, &mut body, clock)) => return,
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn dial(options: &Options) -> io::Result<TcpStream> {
    let socket = if options.mqtt.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    if let Some(from) = options.from.filter(|from| from.is_ipv4() == options.mqtt.is_ipv4()) {
        socket.bind((from, 0).into())?;
    }
    let stream = time::timeout(DIAL, socket.connect(options.mqtt)).await??;
    // Reports are small and each is waited for.
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Polls a connection in turns with the changes of the fault. While frozen it has no turn at all: it neither reads nor
/// writes nor pings, and its socket stays open. `None` when the device goes offline.
async fn in_turns<F: Future>(
    world: &World,
    control: &mut watch::Receiver<Control>,
    connection: F,
) -> Option<F::Output> {
    let watched = control.clone();
    let boots = control.borrow().boots;
    let mut connection = pin!(connection);
    loop {
        if control.borrow_and_update().fault == Fault::Offline {
            return None;
        }
        let turn = poll_fn(|context| {
            let _turn = world.turn();
            // Who changes the fault wakes us through `changed`, after the change.
            let now = *watched.borrow();
            if now.stop || now.boots != boots {
                return Poll::Pending; // `live` is about to drop us
            }
            if matches!(now.fault, Fault::Frozen | Fault::Offline) {
                Poll::Pending
            } else {
                connection.as_mut().poll(context)
            }
        });
        tokio::select! {
            biased;
            changed = control.changed() => changed.ok()?,
            end = turn => return Some(end),
        }
    }
}

/// Lets the firmware do what it does without a connection, except while the board hangs.
async fn firmware_alone(world: &World, idle: impl Future<Output = ()>) {
    let mut idle = pin!(idle);
    let mut control = world.control.subscribe();
    loop {
        let turn = poll_fn(|context| {
            let _turn = world.turn();
            if world.lock().fault == Fault::Frozen { Poll::Pending } else { idle.as_mut().poll(context) }
        });
        tokio::select! {
            biased;
            changed = control.changed() => if changed.is_err() { return },
            () = turn => return,
        }
    }
}

/// The device's own clock, since the start of this run.
struct Clock<'w> {
    world: &'w World,
    /// When it was last looked at, and what it showed.
    last: Cell<(Instant, f64)>,
}

impl<'w> Clock<'w> {
    fn new(world: &'w World) -> Self {
        Self { world, last: Cell::new((Instant::now(), 0.0)) }
    }

    fn now_ms(&self) -> u64 {
        let fault = self.world.lock().fault;
        let fast = if fault == Fault::ClockFast { FAST } else { 1.0 };
        let rate = if fault == Fault::ClockStopped { 0.0 } else { fast };
        let (at, shown_ms) = self.last.get();
        let now = Instant::now();
        let shown_ms = shown_ms + now.duration_since(at).as_secs_f64() * 1_000.0 * rate;
        self.last.set((now, shown_ms));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it begins at 0 and never goes back"
        )]
        let ms = shown_ms as u64;
        ms
    }
}

/// Waits until the control is as wanted; for ever if nobody can change it any more.
async fn until(control: &mut watch::Receiver<Control>, wanted: impl FnMut(&Control) -> bool) {
    if control.wait_for(wanted).await.is_err() {
        std::future::pending().await
    }
}

/// CONNACK codes of MQTT 5 (3.2.2.2) that a person can do something about.
const BAD_LOGIN: u8 = 0x86;
const NOT_AUTHORIZED: u8 = 0x87;

/// Why a connection ended; what its person can do, where only a person can.
fn reason(end: End, device: &str) -> String {
    match end {
        End::Lost => "lost".to_owned(),
        End::NotAccepted(code) => {
            let next = match u8::from(code) {
                BAD_LOGIN => format!(
                    "; the hub knows no {device}, or its password is not the one in the password file: `truetwin device list` shows those it \
                     knows, `truetwin device add {device}` makes one, `truetwin device rotate {device}` gives it another password, \
                     which is shown once"
                ),
                NOT_AUTHORIZED => {
                    "; the simulator speaks plain MQTT, and the hub refuses that with mqtt.tls = \"only\": \
                                   mqtt.tls = \"both\" lets it in"
                        .to_owned()
                }
                _ => String::new(),
            };
            format!("not accepted: {code:?}{next}")
        }
        End::TimedOut => "no answer in time".to_owned(),
        End::NoWelcome => "no welcome in time".to_owned(),
        End::Refused => "refused by the hub".to_owned(),
        End::BadAccount => "bad name or password".to_owned(),
    }
}

/// Half to all of a pause, so that a hundred devices do not dial at the same moment.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause.mul_f64(0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0)
}

/// A random name of a run, 8 hex digits; always the same without a seed.
fn token(fault: Fault) -> Result<String, getrandom::Error> {
    if fault == Fault::SameBoot {
        return Ok("00000000".to_owned());
    }
    getrandom::u32().map(|random| format!("{random:08x}"))
}
