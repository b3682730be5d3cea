//! `sindri-apiserver serve`: the API server on a local port, for `kubectl` and for tests of other programs.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sindri_apiserver::{ApiServer, SharedServer};

use super::certificates::{CertificateAuthority, server_config, write_pair};
use super::data_file::DataFile;
use super::files::{self, StartError};
use super::kubeconfig::render_kubeconfig;
use super::run::{listen, random_token, serve_until_shutdown, shutdown_signal, wall_clock};

/// Names of the server in its certificate.
const NAMES: [&str; 3] = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
/// Maximum number of nodes.
const NODES_MAX: u16 = 1_000;

/// Options of `serve`.
#[derive(clap::Args)]
pub(crate) struct ServeCommand {
    /// Address to listen on; 0.0.0.0 for clients outside of a container.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    bind_address: IpAddr,
    /// Further name or address of the server, which its certificate has too (repeatable). The first one is that of the kubeconfig.
    #[arg(long)]
    name: Vec<String>,
    /// Port to listen on; 0 selects a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// File to write a kubeconfig for this server to.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// Seed of the generated UIDs and names.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Plain HTTP; every client is the administrator.
    #[arg(long)]
    plain_http: bool,
    /// Directory to write ca.crt, token, and the certificates and keys of the server and of an administrator to.
    #[arg(long)]
    cert_dir: Option<PathBuf>,
    /// Additional certificate authority for client certificates.
    #[arg(long)]
    client_ca_file: Option<PathBuf>,
    /// Number of nodes that run pods; without nodes, pods stay pending.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=i64::from(NODES_MAX)))]
    nodes: u16,
    /// File that keeps the objects after the end, and from which they are loaded at the start.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Disable the controllers that create pods and endpoints.
    #[arg(long)]
    without_workloads: bool,
}

impl ServeCommand {
    fn build_server(&self) -> ApiServer {
        let now = wall_clock();
        let machine = ApiServer::new(self.seed, now).without_journal();
        let machine = if self.without_workloads { machine } else { machine.with_workloads() };
        if self.nodes == 0 {
            return machine;
        }
        let names: Vec<String> = (1..=self.nodes).map(|number| format!("node-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        machine.with_kubelet(now, &names)
    }

    /// Returns the address for clients.
    fn address(&self, bound: SocketAddr) -> String {
        match self.name.first() {
            Some(name) if name.contains(':') => format!("[{name}]:{}", bound.port()),
            Some(name) => format!("{name}:{}", bound.port()),
            None if bound.ip().is_unspecified() => format!("{}:{}", NAMES[0], bound.port()),
            None => bound.to_string(),
        }
    }

    /// Returns the names and addresses of the certificate.
    fn names(&self) -> Vec<String> {
        let known = NAMES.map(str::to_owned).into_iter().chain(self.name.iter().cloned());
        let bound = (!self.bind_address.is_unspecified()).then(|| self.bind_address.to_string());
        let names: BTreeSet<String> = known.chain(bound).collect();
        names.into_iter().collect()
    }

    /// Serves until SIGTERM or SIGINT.
    pub(crate) async fn run(self) -> Result<(), StartError> {
        let shutdown = shutdown_signal()?;
        let (listener, bound) = listen(&self.bind_address.to_string(), self.port).await?;
        let address = self.address(bound);
        let mut machine = self.build_server();
        let mut data = match &self.data {
            Some(path) => Some(DataFile::open(path, &mut machine)?),
            None => None,
        };
        let mut tls = None;
        let url;
        if self.plain_http {
            if !self.bind_address.is_loopback() {
                eprintln!("warning: every client that reaches {bound} is the administrator");
            }
            url = format!("http://{address}");
            self.write_kubeconfig(&render_kubeconfig(&url, None, None))?;
        } else {
            url = format!("https://{address}");
            let token = random_token()?;
            machine = machine.with_administrator(&token);
            let authority = CertificateAuthority::new()?;
            let pair = authority.issue_server(&self.names())?;
            let mut authorities = vec![authority.certificate.clone()];
            if let Some(file) = &self.client_ca_file {
                authorities.push(files::read(file)?);
            }
            tls = Some(server_config(&pair, &authorities)?);
            if let Some(directory) = &self.cert_dir {
                write_certificates(directory, &authority, &token)?;
                write_pair(directory, "apiserver", &pair)?;
            }
            self.write_kubeconfig(&render_kubeconfig(&url, Some(&authority.certificate), Some(&token)))?;
            machine = machine.with_signer(Arc::new(authority));
        }
        // The reader of stdout may have gone; the server runs anyway.
        let _unread = writeln!(std::io::stdout(), "READY {url}");
        let server = SharedServer::new(machine);
        let serving = serve_until_shutdown(listener, server.clone(), tls, shutdown);
        match &mut data {
            None => serving.await,
            Some(data) => {
                tokio::select! {
                    biased; // The end comes first, so that nothing is written twice.
                    () = serving => {}
                    () = data.keep(&server) => {}
                }
                data.save(&server);
            }
        }
        Ok(())
    }

    fn write_kubeconfig(&self, text: &str) -> Result<(), StartError> {
        self.kubeconfig.as_deref().map_or(Ok(()), |path| files::write_as("kubeconfig", path, text))
    }
}

fn write_certificates(directory: &Path, authority: &CertificateAuthority, token: &str) -> Result<(), StartError> {
    std::fs::create_dir_all(directory).map_err(|source| StartError::Write {
        role: "directory",
        path: directory.to_owned(),
        source,
    })?;
    files::write_private(&directory.join("ca.crt"), &authority.certificate)?;
    files::write_private(&directory.join("token"), token)?;
    write_pair(directory, "admin", &authority.issue_client("kubernetes-admin", "system:masters")?)
}
