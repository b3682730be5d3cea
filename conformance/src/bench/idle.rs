//! A broker that has nothing to do: how fast it is ready, with a fresh database, and what it costs.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use sindri_figures::{Bar, Sheet, median};

use super::load::{Load, get, now};
use super::server::{Bench, resident};
use crate::process::{Launch, Process};

const STARTS: usize = 5;
const READY_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// How long it is left alone before its memory is read.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures starts.
pub fn measure(bench: &Bench, sheet: &mut Sheet) -> Result<(), String> {
    let mut starts = Vec::with_capacity(STARTS);
    for number in 0..STARTS {
        starts.push(start(bench, number)?);
    }
    let (ready, memory): (Vec<f64>, Vec<f64>) = starts.into_iter().unzip();
    sheet.add("idle broker, ready after", median(ready), "ms", Bar::AtMost(200.0));
    sheet.add("idle broker, memory", median(memory), "MB", Bar::AtMost(25.0));
    Ok(())
}

/// Milliseconds until it is ready, and its memory then.
fn start(bench: &Bench, number: usize) -> Result<(f64, f64), String> {
    let place = bench.place(&format!("idle-{number}"))?;
    let address = free_address()?;
    let database = format!("sqlite:{}", place.join("broker.db").display());
    let listen = address.to_string();
    let flags = ["--listen", &listen, "--database-url", &database, "--admin-key-file"];
    let mut arguments: Vec<std::ffi::OsString> = flags.map(Into::into).into();
    arguments.push(place.join("admin.key").into());
    let launch = Launch {
        name: "sindri-broker".to_owned(),
        program: bench.broker.clone(),
        arguments,
        environment: Vec::new(),
        log: place.join("log"),
    };
    let start = now();
    let mut process = Process::start(launch).map_err(|error| error.to_string())?;
    while !is_ready(address) {
        process.check().map_err(|error| error.to_string())?;
        if start.elapsed() > READY_MAX {
            return Err(format!("the broker is not ready within {READY_MAX:?}"));
        }
        bench.waiter.pause(LOOK_EVERY).map_err(|cut| cut.to_string())?;
    }
    let ready = start.elapsed().as_secs_f64() * 1000.0;
    bench.waiter.pause(SETTLE).map_err(|cut| cut.to_string())?;
    Ok((ready, resident(process.id().ok_or("the broker has ended")?)?))
}

fn is_ready(address: SocketAddr) -> bool {
    Load::connect(address, 1).is_ok_and(|mut load| load.call(&get("/readyz", "-", None), 200).is_ok())
}

fn free_address() -> Result<SocketAddr, String> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.map_err(|error| format!("no free port: {error}"))
}
