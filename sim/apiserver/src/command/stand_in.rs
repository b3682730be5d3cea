//! The machine under the name `kube-apiserver`: the flags that test environments pass to the real one.

use std::io::Write;
use std::path::{Path, PathBuf};

use sindri_apiserver::ApiServer;

use super::certificates::{Authority, Pair, read_pair, server_config, write_pair};
use super::files::{self, StartError};
use super::flags::Flags;
use super::run::{asked_to_end, listen, random_token, serve_until, wall_clock};

/// Flags that mean something here.
const MEANT: [&str; 10] = [
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
/// Flags that are taken without a word, because nothing here depends on them.
const TAKEN: [&str; 14] = [
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

/// Runs as `kube-apiserver` until the process is asked to end.
pub(crate) async fn run(arguments: Vec<String>) -> Result<(), StartError> {
    let flags = Flags::read(arguments);
    if flags.get("help").is_some() || flags.get("h").is_some() {
        return say(&help());
    }
    if flags.get("version").is_some() {
        return say("Kubernetes v1.35.4\n");
    }
    let known = [&MEANT[..], &TAKEN[..]].concat();
    let others = flags.others(&known);
    if !others.is_empty() {
        eprintln!("warning: flags that mean nothing here: --{}", others.join(", --"));
    }
    let end = asked_to_end()?;
    let host = flags.get("bind-address").unwrap_or("127.0.0.1");
    let (listener, address) = listen(host, port(&flags)?).await?;
    let (pair, mut authorities) = certificates(&flags, host)?;
    if let Some(file) = flags.get("client-ca-file") {
        authorities.push(files::read(Path::new(file))?);
    }
    let tls = server_config(&pair, &authorities)?;
    eprintln!("serving on https://{address}");
    serve_until(listener, machine(&flags)?, Some(tls), end).await;
    Ok(())
}

/// An API server alone, as test environments have it: without controllers.
fn machine(flags: &Flags) -> Result<ApiServer, StartError> {
    let mut machine = ApiServer::new(0, wall_clock()).without_journal().without_controllers();
    let off = flags.get("disable-admission-plugins").unwrap_or_default();
    if off.split(',').any(|plugin| plugin == "ServiceAccount") {
        machine = machine.without_account_admission();
    }
    let open = flags.get("authorization-mode").is_some_and(|modes| modes.split(',').any(|mode| mode == "AlwaysAllow"));
    Ok(if open { machine } else { machine.with_administrator(&random_token()?) })
}

fn port(flags: &Flags) -> Result<u16, StartError> {
    let given = flags.get("secure-port").unwrap_or("6443");
    let wrong = |_| StartError::Flag { flag: "secure-port".to_owned(), why: format!("{given:?} is no port") };
    given.parse().map_err(wrong)
}

/// The certificate that the flags name, or the one in the directory, or a new one.
fn certificates(flags: &Flags, host: &str) -> Result<(Pair, Vec<String>), StartError> {
    if let (Some(certificate), Some(key)) = (flags.get("tls-cert-file"), flags.get("tls-private-key-file")) {
        let pair = read_pair(Path::new(certificate), Path::new(key))?;
        return Ok((pair, vec![Authority::new()?.certificate]));
    }
    let directory = flags.get("cert-dir").map(PathBuf::from);
    let file = |name: &str| directory.as_ref().map(|directory| directory.join(name)).filter(|path| path.is_file());
    let authority = Authority::new()?;
    let pair = match (file("apiserver.crt"), file("apiserver.key")) {
        (Some(certificate), Some(key)) => read_pair(&certificate, &key)?,
        _ => {
            let pair = authority.server(&[host.to_owned(), "localhost".to_owned()])?;
            if let Some(directory) = &directory {
                write_pair(directory, "apiserver", &pair)?;
            }
            pair
        }
    };
    Ok((pair, vec![authority.certificate]))
}

fn say(text: &str) -> Result<(), StartError> {
    std::io::stdout().write_all(text.as_bytes()).map_err(StartError::Runtime)
}

/// Test environments look here for the names of flags.
fn help() -> String {
    let mut names = [&MEANT[..], &TAKEN[..]].concat();
    names.sort_unstable();
    let lines: Vec<String> = names.iter().map(|name| format!("      --{name} string\n")).collect();
    format!(
        "A simulated API server under the name of the real one.\n\nUsage:\n  kube-apiserver [flags]\n\nFlags:\n{}",
        lines.concat()
    )
}
