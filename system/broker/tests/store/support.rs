//! A fresh store of each kind, and builders for the records in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::{SignedDuration, Timestamp};
use sindri_broker::{
    Heartbeat, KeyHolder, KeyRecord, KeyRotation, NewRevision, Page, PostgresStore, SqliteStore, Store, StoreError,
    TargetState, WriteContext,
};
use sindri_model::wire::{
    Agent, AgentAnnotation, AgentEvent, AgentLabel, AgentStatus, AgentTarget, DeploymentObject, EventStatus, Generator,
    Stack, StackAnnotation, StackLabel,
};
use sindri_model::{AdminId, AgentId, Entropy, EventId, GeneratorId, LinkId, Pak, RevisionId, StackId};

/// Declares each contract as a test of each kind of store.
macro_rules! contracts {
    ($($name:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::support::World::sqlite()).await;
            })*
        }

        mod sqlite_on_a_thread {
            $(#[tokio::test]
            async fn $name() {
                super::$name(crate::support::World::sqlite_on_a_thread()).await;
            })*
        }

        mod postgres {
            $(#[tokio::test]
            async fn $name() {
                if let Some(world) = crate::support::World::postgres().await {
                    super::$name(world).await;
                }
            })*
        }
    };
}
pub(crate) use contracts;

/// Environment variable with the URL of PostgreSQL. Without it the tests that need PostgreSQL are skipped.
const POSTGRES_URL: &str = "SINDRI_TEST_POSTGRES_URL";

/// Returns entropy with different bytes at each call.
pub fn entropy() -> Entropy {
    static CALLS: AtomicU64 = AtomicU64::new(1);
    Entropy::new(|bytes| {
        let mut state = CALLS.fetch_add(1, Ordering::SeqCst).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
    })
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// Id of the administrator that makes every write, and has no record.
pub fn admin_id() -> AdminId {
    AdminId::generate(&Entropy::new(|bytes| bytes.fill(9)))
}

pub fn write_context() -> WriteContext {
    WriteContext { actor: Some(KeyHolder::Admin(admin_id())), ..WriteContext::system(at(0), entropy()) }
}

pub fn write_context_with_key(key: &str) -> WriteContext {
    WriteContext { idempotency_key: Some(key.to_owned()), ..write_context() }
}

/// A store with a generator in it.
pub struct World {
    pub store: Arc<dyn Store>,
    pub generator: GeneratorId,
    /// URL of the database, if it can be opened again.
    pub url: Option<String>,
    _directory: Option<tempfile::TempDir>,
}

impl World {
    pub fn sqlite() -> Self {
        Self::new(Arc::new(SqliteStore::open(":memory:", None).unwrap()), None, None)
    }

    pub fn sqlite_at(path: &str) -> Self {
        Self::new(Arc::new(SqliteStore::open(path, None).unwrap()), None, None)
    }

    #[expect(clippy::disallowed_methods, reason = "the process runs the worker on a thread too")]
    pub fn sqlite_on_a_thread() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sindri.db").display().to_string();
        let (store, worker) = SqliteStore::open_with_worker(&path).unwrap();
        std::thread::spawn(move || worker.run());
        Self::new(Arc::new(store), None, Some(directory))
    }

    /// Opens a store in a PostgreSQL schema of its own.
    pub async fn postgres() -> Option<Self> {
        let url = fresh_schema().await?;
        let store = PostgresStore::open(&url, 8).await.unwrap();
        Some(Self::new(Arc::new(store), Some(url), None))
    }

    fn new(store: Arc<dyn Store>, url: Option<String>, directory: Option<tempfile::TempDir>) -> Self {
        Self { store, generator: GeneratorId::generate(&entropy()), url, _directory: directory }
    }

    /// Adds the generator and agents registered with it.
    pub async fn add_agents<const N: usize>(&self) -> [AgentId; N] {
        self.add_generator(self.generator, "shop").await;
        let mut agents = Vec::new();
        for index in 0..N {
            agents.push(self.add_agent(&format!("agent-{index}"), &[self.generator]).await.unwrap());
        }
        agents.try_into().unwrap()
    }

    pub async fn add_generator(&self, id: GeneratorId, name: &str) {
        let generator = Generator {
            id,
            created_at: at(0),
            updated_at: at(0),
            deleted_at: None,
            name: name.to_owned(),
            description: None,
            is_active: true,
            is_system: false,
            last_active_at: None,
        };
        self.store.create_generator(write_context(), generator, key()).await.unwrap();
    }

    pub async fn add_agent(&self, name: &str, generators: &[GeneratorId]) -> Result<AgentId, StoreError> {
        let agent = agent(name);
        let id = agent.id;
        self.store.create_agent(write_context(), agent, key(), generators.to_vec()).await.map(|()| id)
    }

    /// Replaces the key of an agent.
    pub async fn rotate_agent_key(&self, agent: AgentId, key: KeyRecord) -> Result<(), StoreError> {
        let expected = self.store.list_keys_of_holder(KeyHolder::Agent(agent)).await?;
        let rotation = KeyRotation { expected, key, previous_until: None };
        self.store.rotate_agent_key(write_context(), agent, rotation).await.map(drop)
    }

    pub async fn add_stack(&self, name: &str) -> StackId {
        self.store.create_stack(write_context(), stack(name, self.generator)).await.unwrap().id
    }

    pub async fn submit(&self, stack: StackId) -> DeploymentObject {
        self.store.append_revision(write_context(), revision(stack, "a: 1")).await.unwrap()
    }

    pub async fn submit_marker(&self, stack: StackId) -> DeploymentObject {
        let marker = NewRevision { is_deletion_marker: true, ..revision(stack, "") };
        self.store.append_revision(write_context(), marker).await.unwrap()
    }

    pub async fn target(&self, agent_id: AgentId, stack_id: StackId) -> Result<AgentTarget, StoreError> {
        let id = LinkId::generate(&entropy());
        self.store.add_target(write_context(), AgentTarget { id, agent_id, stack_id }).await
    }

    pub async fn label_agent(&self, agent_id: AgentId, label: &str) {
        let id = LinkId::generate(&entropy());
        self.store
            .add_agent_label(write_context(), AgentLabel { id, agent_id, label: label.to_owned() })
            .await
            .unwrap();
    }

    pub async fn label_stack(&self, stack_id: StackId, label: &str) {
        let id = LinkId::generate(&entropy());
        self.store
            .add_stack_label(write_context(), StackLabel { id, stack_id, label: label.to_owned() })
            .await
            .unwrap();
    }

    pub async fn annotate_agent(&self, agent_id: AgentId, key: &str, value: &str) {
        let (id, key, value) = (LinkId::generate(&entropy()), key.to_owned(), value.to_owned());
        self.store.add_agent_annotation(write_context(), AgentAnnotation { id, agent_id, key, value }).await.unwrap();
    }

    pub async fn annotate_stack(&self, stack_id: StackId, key: &str, value: &str) {
        let (id, key, value) = (LinkId::generate(&entropy()), key.to_owned(), value.to_owned());
        self.store.add_stack_annotation(write_context(), StackAnnotation { id, stack_id, key, value }).await.unwrap();
    }

    /// Polls like the agent; returns each revision with true for a removal.
    pub async fn poll(&self, agent: AgentId) -> Vec<(RevisionId, bool)> {
        revision_ids(&self.store.deliver_target_state(agent).await.unwrap())
    }

    /// Polls like the agent, and returns the removal that is its whole target state.
    pub async fn only_removal(&self, agent: AgentId) -> RevisionId {
        match self.poll(agent).await[..] {
            [(id, true)] => id,
            ref other => panic!("{other:?}"),
        }
    }

    pub async fn report(&self, agent: AgentId, revision: RevisionId, status: EventStatus) -> Result<(), StoreError> {
        self.store.record_event(write_context(), event(agent, revision, status)).await.map(drop)
    }

    pub async fn send_heartbeat(&self, agent: AgentId, second: i64) {
        let heartbeat = Heartbeat { received_at: at(second), report: Default::default() };
        self.store.record_heartbeats(vec![(agent, heartbeat)]).await.unwrap();
    }
}

/// Returns each revision of a target state with true for a removal.
pub fn revision_ids(target: &TargetState) -> Vec<(RevisionId, bool)> {
    target.revisions.iter().map(|target| (target.revision.id, target.revision.is_deletion_marker)).collect()
}

pub fn key() -> KeyRecord {
    KeyRecord::from(&Pak::generate(&entropy()))
}

pub fn agent(name: &str) -> Agent {
    Agent {
        id: AgentId::generate(&entropy()),
        created_at: at(0),
        updated_at: at(0),
        deleted_at: None,
        name: name.to_owned(),
        cluster_name: "cluster".to_owned(),
        status: AgentStatus::Inactive,
        last_heartbeat: None,
        k8s_reachable: None,
        k8s_api_latency_ms: None,
        k8s_reported_at: None,
    }
}

pub fn stack(name: &str, generator_id: GeneratorId) -> Stack {
    Stack {
        id: StackId::generate(&entropy()),
        created_at: at(0),
        updated_at: at(0),
        deleted_at: None,
        name: name.to_owned(),
        description: None,
        generator_id,
    }
}

pub fn revision(stack: StackId, yaml: &str) -> NewRevision {
    NewRevision {
        id: RevisionId::generate(&entropy()),
        stack,
        yaml_content: yaml.to_owned(),
        is_deletion_marker: false,
    }
}

pub fn event(agent_id: AgentId, revision: RevisionId, status: EventStatus) -> AgentEvent {
    AgentEvent {
        id: EventId::generate(&entropy()),
        created_at: at(1),
        updated_at: at(1),
        deleted_at: None,
        agent_id,
        deployment_object_id: revision,
        event_type: "DEPLOY".to_owned(),
        status,
        message: None,
    }
}

pub fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

pub const ALL: Page = Page::FIRST;

/// Returns the URL of an empty schema, if a PostgreSQL server is configured.
#[expect(clippy::disallowed_methods, reason = "the test command passes the URL in the environment")]
pub async fn fresh_schema() -> Option<String> {
    let Ok(url) = std::env::var(POSTGRES_URL) else {
        eprintln!("skipped: {POSTGRES_URL} is not set; `cargo xtask test` sets it");
        return None;
    };
    let mut random = [0_u8; 8];
    getrandom::fill(&mut random).unwrap();
    let name = format!("test_{:016x}", u64::from_le_bytes(random));
    run_sql(&url, &format!("CREATE SCHEMA {name}")).await;
    let separator = if url.contains('?') { '&' } else { '?' };
    Some(format!("{url}{separator}options=-csearch_path%3D{name}"))
}

/// Executes statements without the store.
pub async fn run_sql(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);
    client.batch_execute(sql).await.unwrap();
}
