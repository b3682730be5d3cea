//! The connection that keeps a container running: the `plane` program in it ends when the connection is closed.

use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Sent by the `plane` program when it has accepted the connection.
const GREETING: &[u8] = b"held\n";
/// Timeout and number of attempts: the container has only started a moment ago.
const ATTEMPT_MAX: Duration = Duration::from_secs(2);
const ATTEMPTS_MAX: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// Connects, and waits for the greeting: the engine's proxy may accept a connection before the program listens.
pub(super) async fn connect(port: u16) -> Option<TcpStream> {
    for _ in 0..ATTEMPTS_MAX {
        if let Ok(Some(connection)) = timeout(ATTEMPT_MAX, connect_once(port)).await {
            return Some(connection);
        }
        sleep(PAUSE).await;
    }
    None
}

async fn connect_once(port: u16) -> Option<TcpStream> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let mut greeting = [0; GREETING.len()];
    connection.read_exact(&mut greeting).await.ok()?;
    (greeting == GREETING).then_some(connection)
}

/// Waits until the other side closes the connection.
pub(super) async fn wait_until_closed(connection: &mut TcpStream) {
    let mut byte = [0];
    while matches!(connection.read(&mut byte).await, Ok(length) if length > 0) {}
}
