//! How fast and how small the simulated API server is, beside the real one in the same run.

mod inside;
mod outside;

use sindri_cluster::{Options, Provider, Stop};
use sindri_figures::{Bar, Sheet};
use sindri_record::figures::load::{Kind, rate};
use sindri_record::session::target_of;

/// The area that they belong to.
pub const AREA: &str = "apiserver";
/// How many objects a state has, each the size of a small manifest.
const OBJECTS: usize = 10_000;
const VALUE_BYTES: usize = 1024;
/// The bars: applies a second over those of the real server, in process and over one connection.
const INSIDE_BAR: Bar = Bar::AtLeast(10.0);
const OUTSIDE_BAR: Bar = Bar::AtLeast(3.0);

/// Measures everything on the simulated server, and what it is compared with on the real one.
pub fn measure(simulated: &dyn Provider, real: &dyn Provider, stop: &Stop, sheet: &mut Sheet) -> Result<(), String> {
    inside::measure_state(sheet);
    let options = Options { stop: stop.clone(), ..Options::default() };
    let over_a_port = outside::measure(simulated, &options, sheet)?;
    let in_process = inside::applies_per_second();
    let baseline = applies_per_second(real, &options)?;
    sheet.add("server-side applies, one connection, real", baseline, "per s", Bar::None);
    sheet.add("server-side applies, one connection, simulated", over_a_port, "per s", Bar::None);
    sheet.add("server-side applies, in process, simulated", in_process, "per s", Bar::None);
    sheet.add("applies over one connection, over the real server's", over_a_port / baseline, "ratio", OUTSIDE_BAR);
    sheet.add("applies in process, over the real server's", in_process / baseline, "ratio", INSIDE_BAR);
    Ok(())
}

fn applies_per_second(provider: &dyn Provider, options: &Options) -> Result<f64, String> {
    let cluster = provider.start(options).map_err(words)?;
    let target = target_of(&*cluster).map_err(words)?;
    runtime()?.block_on(rate(&target, Kind::ApplyChange, 1)).map_err(words)
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(words)
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}
