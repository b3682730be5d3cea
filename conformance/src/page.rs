//! Reading a page of a process that runs, such as what it counts.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where processes show what they count.
const METRICS: &str = "/metrics";

/// What the process at `HOST:PORT` has counted so far, as Prometheus reads it.
pub async fn metrics(address: &str) -> Result<String, String> {
    page(address, METRICS).await
}

/// Over a connection of its own, which must not outlive the wait in which it is driven.
async fn page(address: &str, path: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("http://{address}{path}: {error}");
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(failed)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.map_err(failed)?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200 ") => Ok(body.to_owned()),
        _ => Err(format!("http://{address}{path}: {}", answer.lines().next().unwrap_or_default())),
    }
}
