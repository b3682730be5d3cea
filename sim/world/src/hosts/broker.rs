//! The host of a production broker, with its database on the simulated disk.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sindri_broker::{Broker, SqliteStore, StoreError};
use sindri_model::{Clock, Entropy, Pak};
use tokio::time::sleep;

use super::http_port::HTTP_PORT;
use crate::disk;
use crate::engine::Program;
use crate::http_exchanges::ExchangeLog;
use crate::rng::entropy_source;
use crate::wall_clock::wall_time;

/// Interval at which a call that waits for a stalled database checks it again.
const STALL_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Time after which a supervisor starts a broker again that could not start.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Brokers that the database does not respond to.
#[derive(Clone, Default)]
pub struct Stalls(Arc<Mutex<BTreeSet<Option<String>>>>);

impl Stalls {
    /// Begins the stall of a broker; of every broker if `None`.
    pub fn begin(&self, broker: Option<String>) {
        self.lock().insert(broker);
    }

    /// Ends the stall of a broker; every stall if `None`.
    pub fn end(&self, broker: Option<String>) {
        self.lock().retain(|stalled| broker.is_some() && *stalled != broker);
    }

    fn affect(&self, broker: &str) -> bool {
        let stalled = self.lock();
        stalled.iter().any(|stalled| stalled.as_deref().is_none_or(|stalled| stalled == broker))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Option<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Database of the brokers, with the faults that a scenario can give it.
#[derive(Clone, Default)]
pub struct Database {
    /// Brokers that it does not respond to.
    pub stalls: Stalls,
    /// True if the operator declares at the next start that the database was restored.
    pub is_declared_restored: Arc<AtomicBool>,
    /// One server for several brokers, which outlives them; `None` if the broker opens its own file.
    pub shared: Option<Arc<SqliteStore>>,
}

impl Database {
    /// Creates a database for several brokers at once.
    pub fn shared() -> Self {
        Self { shared: Some(Arc::new(open_file())), ..Self::default() }
    }

    fn open(&self, broker: &str) -> SqliteStore {
        let store = self.shared.as_ref().map_or_else(open_file, |shared| shared.replica());
        let (stalls, broker) = (self.stalls.clone(), broker.to_owned());
        store.gated(Arc::new(move || {
            let (stalls, broker) = (stalls.clone(), broker.clone());
            Box::pin(async move {
                while stalls.affect(&broker) {
                    tokio::time::sleep(STALL_CHECK_INTERVAL).await;
                }
            })
        }))
    }
}

fn open_file() -> SqliteStore {
    SqliteStore::open("broker.db", Some(disk::VFS_NAME)).expect("the simulated disk works")
}

/// Starts a broker. One whose database does not respond ends, and its supervisor starts it again.
async fn start(database: &Database, name: &str, entropy: &Entropy, admin: &Pak) -> Broker {
    loop {
        match try_start(database, name, entropy.clone(), admin).await {
            Ok(broker) => return broker,
            Err(StoreError::Unavailable) => sleep(RESTART_PAUSE).await,
            Err(error) => panic!("the simulated disk works: {error}"),
        }
    }
}

async fn try_start(database: &Database, name: &str, entropy: Entropy, admin: &Pak) -> Result<Broker, StoreError> {
    let broker = Broker::start(database.open(name), Clock::new(wall_time), entropy).await?;
    broker.create_admin_key(admin).await?;
    Ok(broker)
}

/// Returns the program of the broker on the host of this name; its HTTP exchanges are recorded in `exchanges`.
pub fn broker(seed: u64, name: &str, admin: Pak, database: Database, exchanges: ExchangeLog) -> Program {
    let entropy = entropy_source(seed, name);
    let name = name.to_owned();
    Box::new(move |network| {
        let (entropy, admin, database) = (entropy(), admin.clone(), database.clone());
        let (name, exchanges) = (name.clone(), exchanges.clone());
        Box::pin(async move {
            let broker = start(&database, &name, &entropy, &admin).await;
            if database.is_declared_restored.swap(false, Ordering::Relaxed) {
                broker.record_restore("declared by the operator".to_owned()).await.expect("the simulated disk works");
            }
            let listener = network.listen(HTTP_PORT).await.expect("one process per host listens");
            let listener = exchanges.observe(&name, listener);
            sindri_broker::serve(listener, broker, pending()).await.expect("the listener never fails");
        })
    })
}
