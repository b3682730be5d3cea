//! Life of one container: started, kept running, and removed.

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
use crate::plane::{Ready, StatusLine};
use crate::provider::Options;

use super::cleanup::ContainerCleanup;
use super::{image, keep_alive};

/// Ports in the container: of the API server, and of the connection that keeps it running.
const API_PORT: u16 = 6443;
const KEEP_ALIVE_PORT: u16 = 6444;
/// User without permissions.
const USER: &str = "65534";
/// Writable directories, in memory.
const WRITABLE: [&str; 2] = ["/run", "/tmp"];
/// Timeout of a start on an overloaded machine.
const READY_MAX: Duration = Duration::from_secs(400);
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time for the engine to remove the container.
const END_MAX: Duration = Duration::from_secs(30);
/// Lines of output that are kept for an error.
const OUTPUT_LINES_MAX: usize = 15;

/// A container whose control plane is ready.
pub(super) struct RunningContainer {
    pub(super) id: String,
    pub(super) server: String,
    pub(super) authority_pem: String,
}

type Report = SyncSender<Result<RunningContainer, ClusterError>>;

/// Starts a container, reports when it is ready, and keeps it running until it is released or ends.
pub(super) async fn run(
    binaries: &Binaries,
    options: &Options,
    token: &Secret,
    mut released: oneshot::Receiver<()>,
    report: &Report,
) {
    let (output, name) = (LogLines::default(), directory::unique_name());
    let cleanup = match ContainerCleanup::start(&name) {
        Ok(cleanup) => cleanup,
        Err(error) => {
            let _dropped = report.send(Err(ClusterError::from_io(Path::new("/bin/sh"), &error)));
            return;
        }
    };
    let (container, mut connection) = match start(binaries, options, token, &name, output.clone()).await {
        Ok(started) => started,
        Err(error) => {
            let _dropped = report.send(Err(error));
            return;
        }
    };
    let ready = wait_until_ready(&container, &output, options).await;
    let is_ready = ready.is_ok();
    // A receiver that is gone has released the container too.
    let _dropped = report.send(ready);
    if is_ready {
        tokio::select! {
            biased; // a release comes first: the end that follows it is expected
            _ = &mut released => {}
            () = keep_alive::wait_until_closed(&mut connection) => {}
        }
    }
    drop(connection);
    if timeout(END_MAX, wait_until_removed(container)).await.is_ok() {
        cleanup.cancel();
    }
}

/// Removes the container, which also ends by itself because the connection is closed, and waits until it is gone.
async fn wait_until_removed(container: ContainerAsync<GenericImage>) {
    // Fails for a container that is gone already.
    let id = container.id().to_owned();
    let _removed = container.rm().await;
    if let Ok(engine) = image::connect() {
        while engine.inspect_container(&id, None).await.is_ok() {
            sleep(CHECK_INTERVAL).await;
        }
    }
}

async fn start(
    binaries: &Binaries,
    options: &Options,
    token: &Secret,
    name: &str,
    output: LogLines,
) -> Result<(ContainerAsync<GenericImage>, tokio::net::TcpStream), ClusterError> {
    let tag = image::prepare(binaries).await?;
    let request = request(&tag, options, token).with_container_name(name).with_log_consumer(output.clone());
    let container = request.start().await.map_err(|error| start_error(&error.to_string(), options))?;
    let port =
        container.get_host_port_ipv4(KEEP_ALIVE_PORT).await.map_err(|error| failed(error.to_string(), &output))?;
    match keep_alive::connect(port).await {
        Some(connection) => Ok((container, connection)),
        None => Err(failed("the container does not accept the connection that keeps it running".to_owned(), &output)),
    }
}

/// Converts an error of the engine. A port that is in use is reported when the container is started.
fn start_error(error: &str, options: &Options) -> ClusterError {
    let is_taken = error.contains("port is already allocated") || error.contains("address already in use");
    let failure = match options.port {
        Some(port) if is_taken => Failure::new(
            format!("port {port} of 127.0.0.1 is in use"),
            "choose another port, or none to get a free one",
        ),
        _ => Failure::new(format!("the container cannot be started: {error}"), "read the log of the container engine"),
    };
    ClusterError::Failed(failure)
}

fn failed(reason: String, output: &LogLines) -> ClusterError {
    let failure = output.find(|line| match StatusLine::parse(line) {
        StatusLine::Failed(failure) => Some(failure),
        StatusLine::Ready(_) | StatusLine::Other => None,
    });
    ClusterError::Failed(failure.unwrap_or_else(|| Failure {
        process: Some("the container".to_owned()),
        reason,
        tail: output.all(),
        advice: "read the log of the container engine".to_owned(),
    }))
}

fn request(tag: &str, options: &Options, token: &Secret) -> ContainerRequest<GenericImage> {
    let port = options.port.unwrap_or(0);
    let arguments = [
        "--directory=/run/plane".to_owned(),
        "--bind=0.0.0.0".to_owned(),
        format!("--port={API_PORT}"),
        format!("--keep-alive=tcp:0.0.0.0:{KEEP_ALIVE_PORT}"),
        format!("--pristine={}", options.pristine),
    ];
    GenericImage::new(image::NAME, tag)
        .with_exposed_port(API_PORT.tcp())
        .with_exposed_port(KEEP_ALIVE_PORT.tcp())
        .with_cmd(arguments)
        .with_env_var("PLANE_TOKEN", token.expose())
        .with_user(USER)
        .with_cap_drop("ALL")
        .with_readonly_rootfs(true)
        .with_security_opt("no-new-privileges")
        .with_label("sindri.cluster", "container")
        .with_host_config_modifier(move |host| restrict(host, port))
}

/// Publishes ports on the loopback interface only, mounts writable memory, and lets the engine remove the container at its end.
fn restrict(host: &mut HostConfig, port: u16) {
    let binding = |port: u16| {
        let on_loopback = PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some(port.to_string()) };
        Some(vec![on_loopback])
    };
    let ports = [(format!("{API_PORT}/tcp"), binding(port)), (format!("{KEEP_ALIVE_PORT}/tcp"), binding(0))];
    host.port_bindings = Some(HashMap::from(ports));
    host.publish_all_ports = Some(false);
    host.auto_remove = Some(true);
    host.tmpfs = Some(WRITABLE.map(|path| (path.to_owned(), "mode=1777".to_owned())).into());
}

async fn wait_until_ready(
    container: &ContainerAsync<GenericImage>,
    output: &LogLines,
    options: &Options,
) -> Result<RunningContainer, ClusterError> {
    let waited = timeout(READY_MAX, async {
        loop {
            if options.stop.is_set() {
                return Err(ClusterError::Interrupted);
            }
            if let Some(ready) = output.find(|line| match StatusLine::parse(line) {
                StatusLine::Ready(ready) => Some(ready),
                StatusLine::Failed(_) | StatusLine::Other => None,
            }) {
                return describe(container, *ready).await;
            }
            if !container.is_running().await.unwrap_or(false) {
                // Its last lines of output may arrive late.
                sleep(CHECK_INTERVAL).await;
                return Err(failed("the container ended unexpectedly".to_owned(), output));
            }
            sleep(CHECK_INTERVAL).await;
        }
    });
    waited.await.unwrap_or_else(|_| Err(failed(format!("no control plane within {READY_MAX:?}"), output)))
}

async fn describe(container: &ContainerAsync<GenericImage>, ready: Ready) -> Result<RunningContainer, ClusterError> {
    let port = container.get_host_port_ipv4(API_PORT).await;
    let port = port.map_err(|error| ClusterError::Failed(Failure::new(error.to_string(), "")))?;
    let server = format!("https://127.0.0.1:{port}");
    Ok(RunningContainer { id: container.id().to_owned(), server, authority_pem: ready.authority_pem })
}

/// The first lines of a container's output; the status line is among them.
#[derive(Clone, Default)]
struct LogLines(Arc<Mutex<Vec<String>>>);

impl LogLines {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn find<T>(&self, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.all().iter().find_map(|line| find(line))
    }
}

impl LogConsumer for LogLines {
    fn accept<'a>(&'a self, frame: &'a LogFrame) -> futures_util::future::BoxFuture<'a, ()> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in String::from_utf8_lossy(frame.bytes()).lines().take(OUTPUT_LINES_MAX) {
            if lines.len() < OUTPUT_LINES_MAX {
                lines.push(line.to_owned());
            }
        }
        drop(lines);
        Box::pin(std::future::ready(()))
    }
}
