//! `sindri-apiserver`: the simulated API server on a real port.
//!
//! By its own name it serves `kubectl` and tests of other programs on the loopback interface. Started as `kube-apiserver` it
//! takes the flags of the real one, and as `etcd` it reports to be healthy, so that test environments can use it.

mod command;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use command::{AssetsCommand, ServeCommand, StartError, etcd, stand_in};

/// A request is many small allocations, most of them short-lived.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Version of the project, and in a release also the commit.
const VERSION: &str = match option_env!("SINDRI_VERSION") {
    Some(version) => version,
    None => env!("CARGO_PKG_VERSION"),
};

/// A Kubernetes API server that runs anywhere.
#[derive(Parser)]
#[command(name = "sindri-apiserver", version = VERSION)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve until SIGTERM or SIGINT.
    Serve(ServeCommand),
    /// Create a directory of programs for the test environments of Go.
    Assets(AssetsCommand),
}

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    let program = arguments.next().unwrap_or_default();
    let name = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let served = match name {
        "kube-apiserver" => run(stand_in::run(arguments.collect())),
        "etcd" => run(etcd::run(arguments.collect())),
        _ => match Arguments::parse().command {
            Command::Serve(serve) => run(serve.run()),
            Command::Assets(assets) => assets.run(),
        },
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}

fn run(program: impl Future<Output = Result<(), StartError>>) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::Runtime);
    runtime.and_then(|runtime| runtime.block_on(program))
}
