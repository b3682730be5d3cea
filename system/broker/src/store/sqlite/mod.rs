//! The store in one SQLite file: one connection behind a lock, calls inline, one transaction each.
//!
//! The file belongs to one broker at a time (exclusive locking): no shared memory is needed beside the log,
//! and a second broker on the same file is refused at its start. What each verb does is in a file per subject.

mod agents;
mod events;
mod generators;
mod keys;
mod rows;
mod schema;
mod stacks;
mod targets;

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};
use sindri_model::wire::{
    Agent, AgentEvent, AgentGeneratorRegistration, AgentTarget, DeploymentObject, Generator, HeartbeatReport, Stack,
    UpdateAgentRequest,
};
use sindri_model::{AgentId, EventId, GeneratorId, PakDigest, RevisionId, StackId};
use thiserror::Error;

use super::{DesiredSet, KeyHolder, KeyRecord, NewRevision, RevisionRecord, Store, StoreError, Stored};

/// More statements than there are in this crate.
const STATEMENTS_CACHED: usize = 128;

/// A store in one SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    connection: Mutex<Connection>,
}

/// The file cannot be used as a store.
#[derive(Debug, Error)]
pub enum OpenError {
    /// A newer Sindri has migrated it.
    #[error(
        "the database has schema version {found}, and this broker knows versions up to {known}: use a newer broker"
    )]
    Newer {
        /// The version of the file.
        found: i64,
        /// The newest version of this broker.
        known: usize,
    },
    /// It holds the tables of something else.
    #[error("the database is not one of Sindri: it holds other tables")]
    Foreign,
    /// Another broker has it.
    #[error("the database is in use by another process")]
    InUse,
    /// SQLite failed.
    #[error("the database cannot be opened: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::InUse,
            _ => Self::Sqlite(error),
        }
    }
}

impl SqliteStore {
    /// Opens or creates the file at `path` and brings it to the newest schema. `vfs` names how SQLite
    /// reaches files, if not in the usual way.
    pub fn open(path: &str, vfs: Option<&str>) -> Result<Self, OpenError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = match vfs {
            Some(vfs) => Connection::open_with_flags_and_vfs(path, flags, vfs)?,
            None => Connection::open_with_flags(path, flags)?,
        };
        Self::with_connection(connection)
    }

    fn with_connection(mut connection: Connection) -> Result<Self, OpenError> {
        // Who has the file locked keeps it locked: waiting would not help.
        connection.busy_timeout(std::time::Duration::ZERO)?;
        // Before the journal's mode: with it, the write-ahead log needs no shared memory.
        connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        schema::migrate(&mut connection)?;
        Ok(Self { connection: Mutex::new(connection) })
    }

    /// One verb in one transaction. It is rolled back if the verb fails, and a verb that only reads writes nothing.
    fn verb<'a, T: Send + 'a>(
        &'a self,
        verb: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'a,
    ) -> Stored<'a, T> {
        Box::pin(async move {
            // A panic inside a verb has rolled its transaction back: the connection is as good as before.
            let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
            let result = verb(&transaction)?;
            transaction.commit()?;
            Ok(result)
        })
    }
}

impl Store for SqliteStore {
    fn ping(&self) -> Stored<'_, ()> {
        self.verb(|connection| rows::any(connection, "SELECT 1 FROM meta", []).map(drop))
    }

    fn has_admin(&self) -> Stored<'_, bool> {
        self.verb(keys::has_admin)
    }

    fn create_admin(&self, key: KeyRecord, at: Timestamp) -> Stored<'_, bool> {
        self.verb(move |connection| keys::create_admin(connection, &key, at))
    }

    fn keys(&self, short: String) -> Stored<'_, Vec<(PakDigest, KeyHolder)>> {
        self.verb(move |connection| keys::by_short(connection, &short))
    }

    fn create_agent(
        &self,
        agent: Agent,
        key: KeyRecord,
        registrations: Vec<AgentGeneratorRegistration>,
    ) -> Stored<'_, ()> {
        self.verb(move |connection| agents::create(connection, &agent, &key, &registrations))
    }

    fn agents(&self) -> Stored<'_, Vec<Agent>> {
        self.verb(agents::list)
    }

    fn agent(&self, agent: AgentId) -> Stored<'_, Agent> {
        self.verb(move |connection| agents::get(connection, agent))
    }

    fn find_agent(&self, name: String, cluster_name: String) -> Stored<'_, Agent> {
        self.verb(move |connection| agents::find(connection, &name, &cluster_name))
    }

    fn update_agent(&self, agent: AgentId, changes: UpdateAgentRequest, at: Timestamp) -> Stored<'_, Agent> {
        self.verb(move |connection| agents::update(connection, agent, &changes, at))
    }

    fn delete_agent(&self, agent: AgentId, at: Timestamp) -> Stored<'_, ()> {
        self.verb(move |connection| agents::delete(connection, agent, at))
    }

    fn record_heartbeat(&self, agent: AgentId, report: HeartbeatReport, at: Timestamp) -> Stored<'_, ()> {
        self.verb(move |connection| agents::heartbeat(connection, agent, &report, at))
    }

    fn create_generator(&self, generator: Generator, key: KeyRecord) -> Stored<'_, ()> {
        self.verb(move |connection| generators::create(connection, &generator, &key))
    }

    fn generators(&self) -> Stored<'_, Vec<Generator>> {
        self.verb(generators::list)
    }

    fn generator(&self, generator: GeneratorId) -> Stored<'_, Generator> {
        self.verb(move |connection| generators::get(connection, generator))
    }

    fn register(&self, registration: AgentGeneratorRegistration) -> Stored<'_, ()> {
        self.verb(move |connection| generators::register(connection, &registration))
    }

    fn unregister(&self, generator: GeneratorId, agent: AgentId) -> Stored<'_, ()> {
        self.verb(move |connection| generators::unregister(connection, generator, agent))
    }

    fn registrations_of_agent(&self, agent: AgentId) -> Stored<'_, Vec<AgentGeneratorRegistration>> {
        self.verb(move |connection| generators::registrations_of_agent(connection, agent))
    }

    fn registrations_with(&self, generator: GeneratorId) -> Stored<'_, Vec<AgentGeneratorRegistration>> {
        self.verb(move |connection| generators::registrations_with(connection, generator))
    }

    fn create_stack(&self, stack: Stack) -> Stored<'_, ()> {
        self.verb(move |connection| stacks::create(connection, &stack))
    }

    fn stacks(&self, owner: Option<GeneratorId>) -> Stored<'_, Vec<Stack>> {
        self.verb(move |connection| stacks::list(connection, owner))
    }

    fn stack(&self, stack: StackId) -> Stored<'_, Stack> {
        self.verb(move |connection| stacks::get(connection, stack))
    }

    fn delete_stack(&self, stack: StackId, marker: RevisionId, at: Timestamp) -> Stored<'_, ()> {
        self.verb(move |connection| stacks::delete(connection, stack, marker, at))
    }

    fn stacks_of_agent(&self, agent: AgentId) -> Stored<'_, Vec<Stack>> {
        self.verb(move |connection| stacks::of_agent(connection, agent))
    }

    fn append_revision(&self, revision: NewRevision) -> Stored<'_, DeploymentObject> {
        self.verb(move |connection| stacks::append(connection, &revision))
    }

    fn revisions(&self, stack: StackId) -> Stored<'_, Vec<DeploymentObject>> {
        self.verb(move |connection| stacks::revisions(connection, stack))
    }

    fn revision(&self, revision: RevisionId) -> Stored<'_, RevisionRecord> {
        self.verb(move |connection| stacks::revision(connection, revision))
    }

    fn add_target(&self, target: AgentTarget) -> Stored<'_, ()> {
        self.verb(move |connection| targets::add(connection, &target))
    }

    fn remove_target(&self, agent: AgentId, stack: StackId, removal: RevisionId, at: Timestamp) -> Stored<'_, ()> {
        self.verb(move |connection| targets::remove(connection, agent, stack, removal, at))
    }

    fn targets(&self, agent: AgentId) -> Stored<'_, Vec<AgentTarget>> {
        self.verb(move |connection| targets::list(connection, agent))
    }

    fn desired_set(&self, agent: AgentId) -> Stored<'_, DesiredSet> {
        self.verb(move |connection| targets::desired_set(connection, agent))
    }

    fn hand_out(&self, agent: AgentId) -> Stored<'_, DesiredSet> {
        self.verb(move |connection| targets::hand_out(connection, agent))
    }

    fn concerns(&self, agent: AgentId, stack: StackId) -> Stored<'_, bool> {
        self.verb(move |connection| targets::concerns(connection, agent, stack))
    }

    fn record_event(&self, event: AgentEvent, idempotency_key: Option<String>) -> Stored<'_, AgentEvent> {
        self.verb(move |connection| events::record(connection, &event, idempotency_key.as_deref()))
    }

    fn events_of_agent(&self, agent: AgentId) -> Stored<'_, Vec<AgentEvent>> {
        self.verb(move |connection| events::of_agent(connection, agent))
    }

    fn events(&self) -> Stored<'_, Vec<AgentEvent>> {
        self.verb(events::list)
    }

    fn event(&self, event: EventId) -> Stored<'_, AgentEvent> {
        self.verb(move |connection| events::get(connection, event))
    }
}
