//! The program under the name `etcd`: a stub that reports to be healthy. The API server stores its objects itself.

use std::convert::Infallible;
use std::io::Write;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::files::StartError;
use super::flags::Flags;
use super::run::{listen, shutdown_signal};

const URL_FLAG: &str = "listen-client-urls";

/// Runs as `etcd` until SIGTERM or SIGINT.
pub(crate) async fn run(arguments: Vec<String>) -> Result<(), StartError> {
    let flags = Flags::parse(arguments);
    if flags.get("help").is_some() || flags.get("h").is_some() {
        let help = format!("A stub of etcd.\n\nFlags:\n  --{URL_FLAG} 'http://localhost:2379'\n");
        return std::io::stdout().write_all(help.as_bytes()).map_err(StartError::Runtime);
    }
    let shutdown = shutdown_signal()?;
    let (host, port) = parse_address(&flags)?;
    let (listener, _) = listen(&host, port).await?;
    tokio::select! {
        biased; // Shutdown first: no request needs to be finished.
        () = shutdown => Ok(()),
        () = serve_connections(listener) => Ok(()),
    }
}

fn parse_address(flags: &Flags) -> Result<(String, u16), StartError> {
    let given = flags.get(URL_FLAG).unwrap_or("http://127.0.0.1:2379");
    let first = given.split(',').next().unwrap_or_default();
    let invalid = || StartError::Flag { flag: URL_FLAG.to_owned(), message: format!("{first:?} is not an address") };
    let (host, port) = first.strip_prefix("http://").and_then(|rest| rest.rsplit_once(':')).ok_or_else(invalid)?;
    let port = port.trim_end_matches('/').parse().map_err(|_| invalid())?;
    Ok((host.trim_matches(['[', ']']).to_owned(), port))
}

async fn serve_connections(listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        // Ended connections first, so that the set does not grow.
        tokio::select! {
            biased;
            Some(_ended) = connections.join_next() => {}
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond)));
                }
            }
        }
    }
}

async fn respond(request: http::Request<Incoming>) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let (status, body) = match request.uri().path() {
        "/health" => (http::StatusCode::OK, "{\"health\":\"true\",\"reason\":\"\"}"),
        "/version" => {
            (http::StatusCode::OK, "{\"etcdserver\":\"3.6.5\",\"etcdcluster\":\"3.6.0\",\"storage\":\"3.6.0\"}")
        }
        _ => (http::StatusCode::NOT_FOUND, "404 page not found\n"),
    };
    let mut response = http::Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    Ok(response)
}
