//! The program under the name `kube-apiserver`: accepts the flags that test environments pass to the real one.

use std::io::Write;
use std::path::{Path, PathBuf};

use sindri_apiserver::{ApiServer, SharedServer};

use super::certificates::{CertificateAuthority, CertificatePair, read_pair, server_config, write_pair};
use super::files::{self, StartError};
use super::flags::Flags;
use super::run::{listen, random_token, serve_until_shutdown, shutdown_signal, wall_clock};

/// Flags with an effect.
const SUPPORTED: [&str; 10] = [
    "authorization-mode",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "disable-admission-plugins",
    "help",
    "secure-port",
    "tls-cert-file",
    "tls-private-key-file",
    "version",
];
/// Flags that are ignored without a warning, because nothing here depends on them.
const IGNORED: [&str; 14] = [
    "advertise-address",
    "allow-privileged",
    "enable-admission-plugins",
    "etcd-cafile",
    "etcd-certfile",
    "etcd-keyfile",
    "etcd-servers",
    "feature-gates",
    "service-account-issuer",
    "service-account-key-file",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "storage-backend",
    "v",
];

/// Runs as `kube-apiserver` until SIGTERM or SIGINT.
pub(crate) async fn run(arguments: Vec<String>) -> Result<(), StartError> {
    let flags = Flags::parse(arguments);
    if flags.get("help").is_some() || flags.get("h").is_some() {
        return print(&help_text());
    }
    if flags.get("version").is_some() {
        return print("Kubernetes v1.35.4\n");
    }
    let known = [&SUPPORTED[..], &IGNORED[..]].concat();
    let unknown = flags.unknown(&known);
    if !unknown.is_empty() {
        eprintln!("warning: ignoring unknown flags: --{}", unknown.join(", --"));
    }
    let shutdown = shutdown_signal()?;
    let host = flags.get("bind-address").unwrap_or("127.0.0.1");
    let (listener, address) = listen(host, parse_port(&flags)?).await?;
    let (pair, mut authorities) = load_certificates(&flags, host)?;
    if let Some(file) = flags.get("client-ca-file") {
        authorities.push(files::read(Path::new(file))?);
    }
    let tls = server_config(&pair, &authorities)?;
    eprintln!("serving on https://{address}");
    serve_until_shutdown(listener, SharedServer::new(build_server(&flags)?), Some(tls), shutdown).await;
    Ok(())
}

/// Creates an API server without controllers, as in Go's test environments.
fn build_server(flags: &Flags) -> Result<ApiServer, StartError> {
    let mut machine = ApiServer::new(0, wall_clock()).without_journal().without_controllers();
    let disabled = flags.get("disable-admission-plugins").unwrap_or_default();
    if disabled.split(',').any(|plugin| plugin == "ServiceAccount") {
        machine = machine.without_account_admission();
    }
    let allows_all =
        flags.get("authorization-mode").is_some_and(|modes| modes.split(',').any(|mode| mode == "AlwaysAllow"));
    Ok(if allows_all { machine } else { machine.with_administrator(&random_token()?) })
}

fn parse_port(flags: &Flags) -> Result<u16, StartError> {
    let given = flags.get("secure-port").unwrap_or("6443");
    let invalid = |_| StartError::Flag { flag: "secure-port".to_owned(), message: format!("{given:?} is not a port") };
    given.parse().map_err(invalid)
}

/// Returns the server's certificate and the authorities for clients. The certificate is the one that the flags name, the
/// one in `--cert-dir`, or a new one.
fn load_certificates(flags: &Flags, host: &str) -> Result<(CertificatePair, Vec<String>), StartError> {
    if let (Some(certificate), Some(key)) = (flags.get("tls-cert-file"), flags.get("tls-private-key-file")) {
        let pair = read_pair(Path::new(certificate), Path::new(key))?;
        return Ok((pair, vec![CertificateAuthority::new()?.certificate]));
    }
    let directory = flags.get("cert-dir").map(PathBuf::from);
    let file = |name: &str| directory.as_ref().map(|directory| directory.join(name)).filter(|path| path.is_file());
    let authority = CertificateAuthority::new()?;
    let pair = match (file("apiserver.crt"), file("apiserver.key")) {
        (Some(certificate), Some(key)) => read_pair(&certificate, &key)?,
        _ => {
            let pair = authority.issue_server(&[host.to_owned(), "localhost".to_owned()])?;
            if let Some(directory) = &directory {
                write_pair(directory, "apiserver", &pair)?;
            }
            pair
        }
    };
    Ok((pair, vec![authority.certificate]))
}

fn print(text: &str) -> Result<(), StartError> {
    std::io::stdout().write_all(text.as_bytes()).map_err(StartError::Runtime)
}

/// Returns the help text, from which test environments read the names of the supported flags.
fn help_text() -> String {
    let mut names = [&SUPPORTED[..], &IGNORED[..]].concat();
    names.sort_unstable();
    let lines: Vec<String> = names.iter().map(|name| format!("      --{name} string\n")).collect();
    format!(
        "A simulated API server in place of the real one.\n\nUsage:\n  kube-apiserver [flags]\n\nFlags:\n{}",
        lines.concat()
    )
}
