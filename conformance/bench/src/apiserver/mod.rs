//! Speed and memory of the simulated API server, next to the real one in the same run.

mod in_process;
mod on_port;
mod state;

use sindri_cluster::{Options, Provider, Stop};
use sindri_record::session::cluster_target;

use crate::figures::{Bar, Figures};
use crate::request_rate::{self, RepeatedRequest};

/// Applies per second relative to the real server, in process and over one connection.
const IN_PROCESS_BAR: Bar = Bar::AtLeast(10.0);
const ON_PORT_BAR: Bar = Bar::AtLeast(3.0);

/// Measures the simulated server, and the real one as the baseline.
pub fn measure(
    simulated: &dyn Provider,
    real: &dyn Provider,
    stop: &Stop,
    figures: &mut Figures,
) -> Result<(), String> {
    in_process::measure_state(figures);
    let options = Options { stop: stop.clone(), ..Options::default() };
    let on_port = on_port::measure(simulated, &options, figures)?;
    let in_process = in_process::applies_per_second();
    let baseline = applies_per_second(real, &options)?;
    figures.add("server-side applies, one connection, real", baseline, "per s", Bar::None);
    figures.add("server-side applies, one connection, simulated", on_port, "per s", Bar::None);
    figures.add("server-side applies, in process, simulated", in_process, "per s", Bar::None);
    figures.add("applies over one connection, over the real server's", on_port / baseline, "ratio", ON_PORT_BAR);
    figures.add("applies in process, over the real server's", in_process / baseline, "ratio", IN_PROCESS_BAR);
    Ok(())
}

fn applies_per_second(provider: &dyn Provider, options: &Options) -> Result<f64, String> {
    let cluster = provider.start(options).map_err(|error| error.to_string())?;
    let target = cluster_target(&*cluster).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(request_rate::measure(&target, RepeatedRequest::ApplyChange, 1)).map_err(|error| error.to_string())
}
