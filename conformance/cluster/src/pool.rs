//! Fresh clusters without waiting: while some are in use, others are started and ended in the background.
//!
//! The threads belong to the pool. Dropping it ends every cluster that it still has, and those that were handed out
//! end when whoever has them lets go.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use crate::access::Access;
use crate::error::ClusterError;
use crate::provider::{Cluster, Options, Provider};
use crate::stop::Stop;

type Ended = SyncSender<Box<dyn Cluster>>;
type Started = Result<Box<dyn Cluster>, ClusterError>;
/// The signal as which the end of a pool counts.
const TERMINATE: u8 = 15;

/// Clusters in reserve.
pub struct Pool {
    started: Option<Receiver<Started>>,
    ended: Option<Arc<Ended>>,
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Keeps up to `size` clusters in reserve (at least one). They all have the same options, but for directories and
    /// ports, which each chooses itself.
    pub fn new(provider: Arc<dyn Provider>, options: &Options, size: usize) -> io::Result<Self> {
        let stop = Stop::default();
        let wanted = Options { port: None, directory: None, stop: stop.clone(), ..options.clone() };
        // One waits in the hands of the thread that started it; the others wait in the queue.
        let (start, started) = sync_channel(size.saturating_sub(1));
        let (end, ended) = sync_channel::<Box<dyn Cluster>>(size);
        let keep_starting = move || {
            while !wanted.stop.is_set() && start.send(provider.start(&wanted)).is_ok() {}
        };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let threads =
            vec![thread("starts").spawn(keep_starting)?, thread("ends").spawn(move || ended.iter().for_each(drop))?];
        Ok(Self { started: Some(started), ended: Some(Arc::new(end)), stop, threads })
    }

    /// A fresh cluster, for one user; it waits if none is ready yet.
    pub fn take(&self) -> Result<Pooled, ClusterError> {
        let next = self.started.as_ref().map(Receiver::recv);
        let cluster = next.and_then(Result::ok).unwrap_or(Err(ClusterError::Interrupted))?;
        Ok(Pooled { cluster: Some(cluster), ended: self.ended.as_ref().map(Arc::downgrade).unwrap_or_default() })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop.set(TERMINATE);
        // A start that is under way ends, and what waits in the queues is dropped with them.
        self.started = None;
        self.ended = None;
        for thread in self.threads.drain(..) {
            // A panic there was reported where it happened.
            let _ended = thread.join();
        }
    }
}

/// A cluster from a pool. It is ended in the background.
pub struct Pooled {
    cluster: Option<Box<dyn Cluster>>,
    /// The pool may be gone before it.
    ended: Weak<Ended>,
}

impl Pooled {
    /// How it is reached.
    pub fn access(&self) -> &Access {
        self.cluster().access()
    }

    /// The cluster.
    pub fn cluster(&self) -> &dyn Cluster {
        self.cluster.as_deref().expect("it is only taken out when this is dropped")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let (Some(cluster), Some(ended)) = (self.cluster.take(), self.ended.upgrade()) {
            // Without a pool it is ended here, when the message that nobody takes is dropped.
            let _here = ended.send(cluster);
        }
    }
}
