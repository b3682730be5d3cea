//! The engine, and the image in it.

use futures_util::TryStreamExt;
use futures_util::stream;
use testcontainers::bollard::query_parameters::CreateImageOptionsBuilder;
use testcontainers::bollard::{API_DEFAULT_VERSION, Docker, body_try_stream};

use crate::binaries::Binaries;
use crate::error::{ClusterError, Failure};
use crate::name::ProviderName;

use super::archive::pieces;

/// What images are called; their tag is what they are made from.
pub(super) const NAME: &str = "sindri-controlplane";
/// Where Docker's engine listens if nobody says otherwise.
const SOCKET: &str = "/var/run/docker.sock";
/// Seconds that an answer of the engine may take: it unpacks a large archive.
const ANSWER_SECONDS: u64 = 300;
/// The first program that runs in a container.
const ENTRYPOINT: &str = r#"ENTRYPOINT ["/plane"]"#;

/// Sees that an engine answers, without starting anything.
pub(super) fn require_engine() -> Result<(), ClusterError> {
    // On a thread of its own, because the caller's may belong to a runtime.
    std::thread::scope(|scope| scope.spawn(ping).join().unwrap_or_else(|_| Err(unavailable("it cannot be asked"))))
}

fn ping() -> Result<(), ClusterError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(unavailable)?;
    runtime.block_on(async { connect()?.ping().await.map(drop).map_err(unavailable) })
}

/// The engine that the environment names, or the one of this machine.
pub(super) fn connect() -> Result<Docker, ClusterError> {
    let engine = match std::env::var_os("DOCKER_HOST") {
        Some(_) => Docker::connect_with_defaults(),
        None => Docker::connect_with_unix(SOCKET, ANSWER_SECONDS, API_DEFAULT_VERSION),
    };
    engine.map_err(unavailable)
}

fn unavailable(error: impl std::fmt::Display) -> ClusterError {
    ClusterError::Unavailable {
        provider: ProviderName::Container,
        missing: format!("no container engine answers ({error})"),
        advice: "start Docker, or say with DOCKER_HOST where it is".to_owned(),
    }
}

/// Makes the image of some binaries if the engine does not have it, and tells its tag.
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
        let advice = "see whether the engine has room for 400 MB more (`docker system df`)";
        ClusterError::Failed(Failure::new(format!("the image cannot be made: {error}"), advice))
    })?;
    Ok(binaries.key.clone())
}
