//! A pool of new clusters: while some are in use, others are started and ended in the background.
//!
//! The threads belong to the pool. Dropping it ends every cluster that it still has; clusters that were taken end when they are
//! dropped.

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
/// Signal with which the end of the pool interrupts a start.
const TERMINATE: u8 = 15;

/// New clusters, ready to be taken.
pub struct Pool {
    started: Option<Receiver<Started>>,
    ended: Option<Arc<Ended>>,
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl Pool {
    /// Keeps up to `size` clusters ready, at least one. All have these options, except for directories and ports, which each
    /// cluster chooses itself.
    pub fn new(provider: Arc<dyn Provider>, options: &Options, size: usize) -> io::Result<Self> {
        let stop = Stop::default();
        let options = Options { port: None, directory: None, stop: stop.clone(), ..options.clone() };
        // One waits in the thread that started it; the others wait in the queue.
        let (start, started) = sync_channel(size.saturating_sub(1));
        let (end, ended) = sync_channel::<Box<dyn Cluster>>(size);
        let keep_starting = move || {
            while !options.stop.is_set() && start.send(provider.start(&options)).is_ok() {}
        };
        let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let threads =
            vec![thread("starts").spawn(keep_starting)?, thread("ends").spawn(move || ended.iter().for_each(drop))?];
        Ok(Self { started: Some(started), ended: Some(Arc::new(end)), stop, threads })
    }

    /// Takes a new cluster, and waits if none is ready yet.
    pub fn take(&self) -> Result<PooledCluster, ClusterError> {
        let next = self.started.as_ref().map(Receiver::recv);
        let cluster = next.and_then(Result::ok).unwrap_or(Err(ClusterError::Interrupted))?;
        Ok(PooledCluster { cluster: Some(cluster), ended: self.ended.as_ref().map(Arc::downgrade).unwrap_or_default() })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.stop.set(TERMINATE);
        // A start in progress is interrupted, and clusters in the queues are dropped with them.
        self.started = None;
        self.ended = None;
        for thread in self.threads.drain(..) {
            // A panic of the thread has been reported already.
            let _ended = thread.join();
        }
    }
}

/// A cluster of a pool. Dropping it ends it in the background.
pub struct PooledCluster {
    cluster: Option<Box<dyn Cluster>>,
    /// Queue of the pool, which may be dropped first.
    ended: Weak<Ended>,
}

impl PooledCluster {
    /// Address and credentials.
    pub fn access(&self) -> &Access {
        self.cluster().access()
    }

    /// Returns the cluster.
    pub fn cluster(&self) -> &dyn Cluster {
        self.cluster.as_deref().expect("only `drop` takes it out")
    }
}

impl Drop for PooledCluster {
    fn drop(&mut self) {
        if let (Some(cluster), Some(ended)) = (self.cluster.take(), self.ended.upgrade()) {
            // If the pool is gone, the cluster ends here, with the message that is not received.
            let _here = ended.send(cluster);
        }
    }
}
