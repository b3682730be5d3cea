//! Connection to the container engine, and the image of the control plane.

use futures_util::TryStreamExt;
use futures_util::stream;
use testcontainers::bollard::query_parameters::CreateImageOptionsBuilder;
use testcontainers::bollard::{API_DEFAULT_VERSION, Docker, body_try_stream};

use crate::binaries::Binaries;
use crate::error::{ClusterError, Failure};
use crate::name::ProviderName;

use super::archive::pieces;

/// Name of the images; the tag is the key of the binaries.
pub(super) const NAME: &str = "sindri-controlplane";
/// Default socket of Docker.
const SOCKET: &str = "/var/run/docker.sock";
/// Timeout of the engine in seconds: it unpacks a large archive.
const RESPONSE_SECONDS: u64 = 300;
/// Program of a container.
const ENTRYPOINT: &str = r#"ENTRYPOINT ["/plane"]"#;

/// Checks that an engine responds.
pub(super) fn require_engine() -> Result<(), ClusterError> {
    // On a thread of its own, because the caller's may already run a runtime.
    std::thread::scope(|scope| scope.spawn(ping).join().unwrap_or_else(|_| Err(unavailable("the check panicked"))))
}

fn ping() -> Result<(), ClusterError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unavailable)?;
    runtime.block_on(async { connect()?.ping().await.map(drop).map_err(unavailable) })
}

/// Connects to the engine of `DOCKER_HOST`, or to the one of this machine.
pub(super) fn connect() -> Result<Docker, ClusterError> {
    let engine = match std::env::var_os("DOCKER_HOST") {
        Some(_) => Docker::connect_with_defaults(),
        None => Docker::connect_with_unix(SOCKET, RESPONSE_SECONDS, API_DEFAULT_VERSION),
    };
    engine.map_err(unavailable)
}

fn unavailable(error: impl std::fmt::Display) -> ClusterError {
    ClusterError::Unavailable {
        provider: ProviderName::Container,
        missing: format!("no container engine responds ({error})"),
        advice: "start Docker, or set DOCKER_HOST to its address".to_owned(),
    }
}

/// Creates the image of some binaries if the engine does not have it, and returns its tag.
pub(super) async fn prepare(binaries: &Binaries) -> Result<String, ClusterError> {
    let engine = connect()?;
    if engine.inspect_image(&format!("{NAME}:{}", binaries.key)).await.is_ok() {
        return Ok(binaries.key.clone());
    }
    let options = CreateImageOptionsBuilder::default()
        .from_src("-")
        .repo(NAME)
        .tag(&binaries.key)
        .changes(vec![ENTRYPOINT.to_owned()])
        .build();
    let archive = body_try_stream(stream::iter(pieces(binaries.programs.clone())));
    let imported = engine.create_image(Some(options), Some(archive), None).try_for_each(|_| async { Ok(()) }).await;
    imported.map_err(|error| {
        let advice = "check that the engine has 400 MB of free space (`docker system df`)";
        ClusterError::Failed(Failure::new(format!("the image cannot be created: {error}"), advice))
    })?;
    Ok(binaries.key.clone())
}
