//! A TCP proxy that delays everything, as a distance between two machines does: data in flight does not wait for other data.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use crate::clock::now;

const READ_BYTES: usize = 64 * 1024;
/// Limit on the pieces of data in flight on one connection, in one direction.
const IN_FLIGHT_MAX: usize = 1_024;

/// A proxy in front of a database. Its threads end with their connections, and with the process.
pub struct DelayingProxy {
    url: String,
}

/// Data, and the time at which it is sent on.
type Delayed = (Instant, Vec<u8>);

impl DelayingProxy {
    /// Starts a proxy to the server in the URL of a database; the delay is that of each direction.
    pub fn start(url: &str, delay: Duration) -> Result<Self, String> {
        let malformed = || format!("{url} must be like postgres://USER@HOST:PORT/DATABASE");
        let (before, rest) = url.split_once('@').ok_or_else(malformed)?;
        let (server, database) = rest.split_once('/').ok_or_else(malformed)?;
        let fail = |error: std::io::Error| format!("the proxy cannot listen: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").map_err(fail)?;
        let own = listener.local_addr().map_err(fail)?;
        let server = server.to_owned();
        run_on_thread(move || accept(&listener, &server, delay));
        Ok(Self { url: format!("{before}@{own}/{database}") })
    }

    /// Returns the URL of the database through the proxy.
    pub fn url(&self) -> &str {
        &self.url
    }
}

#[expect(clippy::disallowed_methods, reason = "the proxy delays real data in real time, beside the measurement")]
fn run_on_thread(work: impl FnOnce() + Send + 'static) {
    drop(std::thread::spawn(work));
}

#[expect(clippy::disallowed_methods, reason = "the proxy delays real data in real time")]
fn sleep_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(now()));
}

fn accept(listener: &TcpListener, server: &str, delay: Duration) {
    while let Ok((client, _)) = listener.accept() {
        // A connection that cannot be made is closed, and the broker reports it.
        let Ok(server) = TcpStream::connect(server) else { continue };
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
        }
        if let (Ok(one), Ok(other)) = (client.try_clone(), server.try_clone()) {
            forward(one, server, delay);
            forward(other, client, delay);
        }
    }
}

/// Forwards one direction of a connection on two threads: one reads, and one writes after the delay.
fn forward(from: TcpStream, to: TcpStream, delay: Duration) {
    let (sender, receiver) = sync_channel(IN_FLIGHT_MAX);
    run_on_thread(move || read(from, &sender, delay));
    run_on_thread(move || write(to, &receiver));
}

fn read(mut from: TcpStream, sender: &SyncSender<Delayed>, delay: Duration) {
    let mut bytes = vec![0; READ_BYTES];
    while let Ok(count) = from.read(&mut bytes) {
        if count == 0 || sender.send((now() + delay, bytes[..count].to_vec())).is_err() {
            return;
        }
    }
}

fn write(mut to: TcpStream, receiver: &Receiver<Delayed>) {
    while let Ok((time, bytes)) = receiver.recv() {
        sleep_until(time);
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // The other end is closed already if this fails.
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_arrives_after_the_delay_and_in_its_order() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("postgres://me@{}/db", listener.local_addr().unwrap());
        let proxy = DelayingProxy::start(&url, Duration::from_millis(30)).unwrap();
        let address = proxy.url().trim_start_matches("postgres://me@").trim_end_matches("/db").to_owned();
        let mut client = TcpStream::connect(address).unwrap();
        let mut server = listener.accept().unwrap().0;
        let start = now();
        client.write_all(b"abc").unwrap();
        client.write_all(b"def").unwrap();
        let mut received = [0; 6];
        server.read_exact(&mut received).unwrap();
        assert_eq!(&received, b"abcdef");
        assert!(start.elapsed() >= Duration::from_millis(30));
        drop(client);
        assert_eq!(server.read(&mut received).unwrap(), 0, "the end is forwarded too");
    }
}
