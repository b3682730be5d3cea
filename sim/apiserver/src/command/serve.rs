//! `sindri-apiserver serve`: the machine on a port of this computer, for `kubectl` and for tests of other programs.

use std::io::Write;
use std::path::{Path, PathBuf};

use sindri_apiserver::ApiServer;

use super::certificates::{Authority, server_config, write_pair};
use super::files::{self, StartError};
use super::kubeconfig::kubeconfig;
use super::run::{asked_to_end, listen, random_token, serve_until, wall_clock};

const HOST: &str = "127.0.0.1";
/// How many nodes there may be.
const NODES_MAX: u16 = 1_000;

/// How the machine is served.
#[derive(clap::Args)]
pub(crate) struct Serve {
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where to write a kubeconfig for this server.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The seed of every identity that the server gives out.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Plain HTTP, where everybody is the administrator.
    #[arg(long)]
    plain_http: bool,
    /// Where to write ca.crt, token, and the certificates and keys of the server and of an administrator.
    #[arg(long)]
    cert_dir: Option<PathBuf>,
    /// Whose client certificates are believed besides those of the server's own authority.
    #[arg(long)]
    client_ca_file: Option<PathBuf>,
    /// How many nodes there are on which pods run; without any, pods stay pending.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=i64::from(NODES_MAX)))]
    nodes: u16,
    /// No controllers that make pods and endpoints.
    #[arg(long)]
    without_workloads: bool,
}

impl Serve {
    fn machine(&self) -> ApiServer {
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

    /// Serves until the process is asked to end.
    pub(crate) async fn run(self) -> Result<(), StartError> {
        let end = asked_to_end()?;
        let (listener, address) = listen(HOST, self.port).await?;
        let mut machine = self.machine();
        let mut tls = None;
        let url;
        if self.plain_http {
            url = format!("http://{address}");
            self.write_kubeconfig(&kubeconfig(&url, None, None))?;
        } else {
            url = format!("https://{address}");
            let token = random_token()?;
            machine = machine.with_administrator(&token);
            let authority = Authority::new()?;
            let pair = authority.server(&[HOST, "localhost", "kubernetes.default.svc"].map(str::to_owned))?;
            let mut authorities = vec![authority.certificate.clone()];
            if let Some(file) = &self.client_ca_file {
                authorities.push(files::read(file)?);
            }
            tls = Some(server_config(&pair, &authorities)?);
            if let Some(directory) = &self.cert_dir {
                write_all(directory, &authority, &token)?;
                write_pair(directory, "apiserver", &pair)?;
            }
            self.write_kubeconfig(&kubeconfig(&url, Some(&authority.certificate), Some(&token)))?;
        }
        // Whoever started this may have stopped reading; that is no reason not to serve.
        let _unread = writeln!(std::io::stdout(), "READY {url}");
        serve_until(listener, machine, tls, end).await;
        Ok(())
    }

    fn write_kubeconfig(&self, text: &str) -> Result<(), StartError> {
        self.kubeconfig.as_deref().map_or(Ok(()), |path| files::write_as("kubeconfig", path, text))
    }
}

fn write_all(directory: &Path, authority: &Authority, token: &str) -> Result<(), StartError> {
    std::fs::create_dir_all(directory).map_err(|source| StartError::Write {
        what: "directory",
        path: directory.to_owned(),
        source,
    })?;
    files::write_private(&directory.join("ca.crt"), &authority.certificate)?;
    files::write_private(&directory.join("token"), token)?;
    write_pair(directory, "admin", &authority.client("kubernetes-admin", "system:masters")?)
}
