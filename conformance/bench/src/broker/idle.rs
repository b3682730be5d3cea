//! An idle broker with a new database: time until it is ready, and memory.

use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use sindri_conformance::process::{Launch, Process};

use super::http_load::{LoadGenerator, get};
use super::server::Bench;
use crate::clock::now;
use crate::figures::{Bar, Figures, median};
use crate::process_memory::resident;

const STARTS: usize = 5;
const READY_MAX: Duration = Duration::from_secs(10);
const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// Time between readiness and the measurement of memory.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures several starts.
pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<(), String> {
    let mut starts = Vec::with_capacity(STARTS);
    for number in 0..STARTS {
        starts.push(start(bench, number)?);
    }
    let (ready, memory): (Vec<f64>, Vec<f64>) = starts.into_iter().unzip();
    figures.add("idle broker, ready after", median(ready), "ms", Bar::AtMost(200.0));
    figures.add("idle broker, memory", median(memory), "MB", Bar::AtMost(25.0));
    Ok(())
}

/// Starts a broker. Returns the milliseconds until it is ready, and its memory in megabytes.
fn start(bench: &Bench, number: usize) -> Result<(f64, f64), String> {
    let directory = bench.create_directory(&format!("idle-{number}"))?;
    let address = free_address()?;
    let database = format!("sqlite:{}", directory.join("broker.db").display());
    let listen = address.to_string();
    let flags = ["--listen", &listen, "--database-url", &database, "--admin-key-file"];
    let mut arguments: Vec<std::ffi::OsString> = flags.map(Into::into).into();
    arguments.push(directory.join("admin.key").into());
    let launch = Launch {
        name: "sindri-broker".to_owned(),
        program: bench.broker.clone(),
        arguments,
        environment: Vec::new(),
        log: directory.join("log"),
    };
    let start = now();
    let mut process = Process::start(launch).map_err(|error| error.to_string())?;
    while !is_ready(address) {
        process.check().map_err(|error| error.to_string())?;
        if start.elapsed() > READY_MAX {
            return Err(format!("the broker is not ready within {READY_MAX:?}"));
        }
        bench.runtime.sleep(CHECK_INTERVAL).map_err(|error| error.to_string())?;
    }
    let ready = start.elapsed().as_secs_f64() * 1000.0;
    bench.runtime.sleep(SETTLE).map_err(|error| error.to_string())?;
    Ok((ready, resident(process.id().ok_or("the broker has ended")?)?))
}

fn is_ready(address: SocketAddr) -> bool {
    LoadGenerator::connect(address, 1).is_ok_and(|mut load| load.call(&get("/readyz", "-", None), 200).is_ok())
}

fn free_address() -> Result<SocketAddr, String> {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.map_err(|error| format!("no free port: {error}"))
}
