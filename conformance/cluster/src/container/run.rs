//! One container: started, held, and gone.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use testcontainers::bollard::models::{HostConfig, PortBinding};
use testcontainers::core::IntoContainerPort;
use testcontainers::core::logs::LogFrame;
use testcontainers::core::logs::consumer::LogConsumer;
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, ContainerRequest, GenericImage, ImageExt};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::access::Secret;
use crate::binaries::Binaries;
use crate::directory;
use crate::error::{ClusterError, Failure};
use crate::plane::{Ready, Said};
use crate::provider::Options;

use super::broom::Broom;
use super::{Running, image, leash};

/// The ports inside: of the API server, and of the leash.
const API_PORT: u16 = 6443;
const LEASH_PORT: u16 = 6444;
/// A user with nothing to lose.
const NOBODY: &str = "65534";
/// Where files may be written, in memory.
const WRITABLE: [&str; 2] = ["/run", "/tmp"];
/// How long the control plane may take, on a machine that is busy.
const READY_MAX: Duration = Duration::from_secs(400);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long the engine may take to remove the container.
const END_MAX: Duration = Duration::from_secs(30);
/// Lines of the container that are kept for an error.
const SAID_MAX: usize = 15;

type Tell = SyncSender<Result<Running, ClusterError>>;

/// Starts a container, tells when it works, and holds it until it is released or ends by itself.
pub(super) async fn run(
    binaries: &Binaries,
    options: &Options,
    token: &Secret,
    mut released: oneshot::Receiver<()>,
    tell: &Tell,
) {
    let (said, name) = (Lines::default(), directory::fresh_name());
    let broom = match Broom::new(&name) {
        Ok(broom) => broom,
        Err(error) => {
            let _unheard = tell.send(Err(ClusterError::file(Path::new("/bin/sh"), &error)));
            return;
        }
    };
    let (container, mut connection) = match start(binaries, options, token, &name, said.clone()).await {
        Ok(started) => started,
        Err(error) => {
            let _unheard = tell.send(Err(error));
            return;
        }
    };
    let ready = await_ready(&container, &said, options).await;
    let works = ready.is_ok();
    // Whoever is not there any more has released it too.
    let _unheard = tell.send(ready);
    if works {
        tokio::select! {
            biased; // whoever lets go is not told about an end that he wanted
            _ = &mut released => {}
            () = leash::cut(&mut connection) => {}
        }
    }
    drop(connection);
    if timeout(END_MAX, gone(container)).await.is_ok() {
        broom.put_away();
    }
}

/// The leash is cut, and the container ends by itself; the engine removes it. It is told so as well.
async fn gone(container: ContainerAsync<GenericImage>) {
    // It fails for one that is gone already.
    let id = container.id().to_owned();
    let _gone = container.rm().await;
    if let Ok(engine) = image::connect() {
        while engine.inspect_container(&id, None).await.is_ok() {
            sleep(LOOK_EVERY).await;
        }
    }
}

async fn start(
    binaries: &Binaries,
    options: &Options,
    token: &Secret,
    name: &str,
    said: Lines,
) -> Result<(ContainerAsync<GenericImage>, tokio::net::TcpStream), ClusterError> {
    let tag = image::prepare(binaries).await?;
    let request = request(&tag, options, token).with_container_name(name).with_log_consumer(said.clone());
    let container = request.start().await.map_err(|error| refused(&error.to_string(), options))?;
    let port = container.get_host_port_ipv4(LEASH_PORT).await.map_err(|error| failed(error.to_string(), &said))?;
    match leash::hold(port).await {
        Some(connection) => Ok((container, connection)),
        None => Err(failed("the container does not hold its leash".to_owned(), &said)),
    }
}

/// An engine that cannot give a port says so when the container is started.
fn refused(error: &str, options: &Options) -> ClusterError {
    let is_taken = error.contains("port is already allocated") || error.contains("address already in use");
    let failure = match options.port {
        Some(port) if is_taken => {
            Failure::new(format!("port {port} of 127.0.0.1 is taken"), "choose another port, or none to get a free one")
        }
        _ => Failure::new(format!("the container cannot be started: {error}"), "see what the engine says about it"),
    };
    ClusterError::Failed(failure)
}

fn failed(reason: String, said: &Lines) -> ClusterError {
    let failure = said.find(|line| match Said::read(line) {
        Said::Failed(failure) => Some(failure),
        Said::Ready(_) | Said::Else => None,
    });
    ClusterError::Failed(failure.unwrap_or_else(|| Failure {
        process: Some("the container".to_owned()),
        reason,
        tail: said.all(),
        advice: "see what the engine says about it".to_owned(),
    }))
}

fn request(tag: &str, options: &Options, token: &Secret) -> ContainerRequest<GenericImage> {
    let port = options.port.unwrap_or(0);
    let arguments = [
        "--directory=/run/plane".to_owned(),
        "--bind=0.0.0.0".to_owned(),
        format!("--port={API_PORT}"),
        format!("--leash=tcp:0.0.0.0:{LEASH_PORT}"),
        format!("--pristine={}", options.pristine),
    ];
    GenericImage::new(image::NAME, tag)
        .with_exposed_port(API_PORT.tcp())
        .with_exposed_port(LEASH_PORT.tcp())
        .with_cmd(arguments)
        .with_env_var("PLANE_TOKEN", token.expose())
        .with_user(NOBODY)
        .with_cap_drop("ALL")
        .with_readonly_rootfs(true)
        .with_security_opt("no-new-privileges")
        .with_label("sindri.cluster", "container")
        .with_host_config_modifier(move |host| restrict(host, port))
}

/// Ports on the loopback interface only, memory to write in, and removed by the engine when it ends.
fn restrict(host: &mut HostConfig, port: u16) {
    let binding = |port: u16| {
        let on_loopback = PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some(port.to_string()) };
        Some(vec![on_loopback])
    };
    let ports = [(format!("{API_PORT}/tcp"), binding(port)), (format!("{LEASH_PORT}/tcp"), binding(0))];
    host.port_bindings = Some(HashMap::from(ports));
    host.publish_all_ports = Some(false);
    host.auto_remove = Some(true);
    host.tmpfs = Some(WRITABLE.map(|place| (place.to_owned(), "mode=1777".to_owned())).into());
}

async fn await_ready(
    container: &ContainerAsync<GenericImage>,
    said: &Lines,
    options: &Options,
) -> Result<Running, ClusterError> {
    let looked = timeout(READY_MAX, async {
        loop {
            if options.stop.is_set() {
                return Err(ClusterError::Interrupted);
            }
            if let Some(ready) = said.find(|line| match Said::read(line) {
                Said::Ready(ready) => Some(ready),
                Said::Failed(_) | Said::Else => None,
            }) {
                return running(container, *ready).await;
            }
            if !container.is_running().await.unwrap_or(false) {
                // Its last words may be on their way.
                sleep(LOOK_EVERY).await;
                return Err(failed("the container ended by itself".to_owned(), said));
            }
            sleep(LOOK_EVERY).await;
        }
    });
    looked.await.unwrap_or_else(|_| Err(failed(format!("no control plane within {READY_MAX:?}"), said)))
}

async fn running(container: &ContainerAsync<GenericImage>, ready: Ready) -> Result<Running, ClusterError> {
    let port = container.get_host_port_ipv4(API_PORT).await;
    let port = port.map_err(|error| ClusterError::Failed(Failure::new(error.to_string(), "")))?;
    let server = format!("https://127.0.0.1:{port}");
    Ok(Running { id: container.id().to_owned(), server, authority_pem: ready.authority_pem })
}

/// What a container said first: a line that matters is among the first.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find<T>(&self, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.all().iter().find_map(|line| find(line))
    }
}

impl LogConsumer for Lines {
    fn accept<'a>(&'a self, frame: &'a LogFrame) -> futures_util::future::BoxFuture<'a, ()> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in String::from_utf8_lossy(frame.bytes()).lines().take(SAID_MAX) {
            if lines.len() < SAID_MAX {
                lines.push(line.to_owned());
            }
        }
        drop(lines);
        Box::pin(std::future::ready(()))
    }
}
