//! The broker: stores the stacks of every cluster and returns to each agent its target state.
//!
//! Agents and operators use its HTTP API (`api`); its durable state is behind [`Store`]. Clock, entropy, store and
//! listener are passed in: nothing here reads the environment. The broker never connects to a cluster; agents do, and
//! report.

mod api;
mod background;
mod broker;
mod closing_permits;
mod encryption_key;
mod epoch;
mod event_types;
mod figures;
mod memory;
mod metrics;
mod offload;
mod oidc;
mod permits;
mod published_metrics;
mod quotas;
mod rates;
mod readiness;
mod request_id;
mod retention;
mod serve;
mod store;
mod throttle;
mod tls;
mod trust;
mod trusted_proxies;
mod webhooks;

pub use api::http::connection_info::PeerAddress;
pub use api::{ErrorResponse, create_admin_offline, openapi_document, router};
pub use broker::{BODY_BYTES_MAX, Bounds, Broker, LiveSettings, Reload, RotatedSecrets};
pub use encryption_key::{EncryptionKey, EncryptionKeyError};
pub use metrics::Metrics;
pub use offload::RunOnThread;
pub use oidc::{FetchDocument, OidcProvider, OidcSettings};
pub use quotas::Quotas;
pub use retention::Retention;
pub use serve::{Limits, Peer, ServeOptions, serve, serve_with};
pub use store::{
    AcquireDeliveries, AcquiredDeliveries, AcquiredDelivery, AssignmentRecord, AttemptOutcome, AuditFilter,
    BackupError, BackupSummary, BundleCipher, BundleDecryptionError, ChangeObserver, ChangeWebhook, ChangesSince,
    ConditionSummary, DatabaseUsage, DeliveryAttempt, DeliveryFilter, EncryptedParts, EventFilter, EventOrder,
    FailedLogin, FleetEntry, Gate, GeneratorUsage, Heartbeat, KeyAccess, KeyHolder, KeyRecord, KeyRotation, ListScope,
    LoginFailure, NewProposal, NewRevision, NewestRevision, OverviewFilter, OverviewRecords, OverviewStack, Page,
    PostgresError, PostgresStore, ProposalRecord, RecordCounts, RecordKind, Reencrypt, ReportedAssignment,
    ReportedOutcome, ReportedPhase, RestoreEvidence, RetentionCutoffs, RewriteBundle, SqliteError, SqliteStore,
    SqliteWorker, StackReports, Store, StoreChange, StoreError, StoreFigures, StoreFuture, StorePosition, StoredKey,
    StoredRevision, Submitter, TargetRevision, TargetState, WebhookRecord, WriteContext, back_up_sqlite,
    restore_sqlite,
};
pub use tls::{Tls, TlsError};
pub use trusted_proxies::{InvalidNetwork, TrustedProxies};
pub use webhooks::{
    Connector, DecryptionError, Dial, GuardedConnector, Resolve, Sender, SystemResolver, TargetPolicy, TcpDialer,
    Trust, WebhookSettings, system_connector,
};
