//! Access keys: lists and rotates them. A key is returned only when it is created.

use axum::Json;
use axum::extract::{FromRequestParts, State};
use http::request::Parts;
use jiff::{SignedDuration, Timestamp};
use schemars::SchemaGenerator;
use sindri_model::limits::GRACE_SECONDS_MAX;
use sindri_model::wire::{
    AdminWithPak, CreateGeneratorResponse, PakSummary, RotateAdminPakResponse, RotateAgentPakResponse, RotatePakRequest,
};
use sindri_model::{AdminId, AgentId, GeneratorId, Pak, PakDigest};

use crate::api::http::authentication::{Actor, SenderKey};
use crate::api::http::denial::Denial;
use crate::api::http::describe::{DescribeRequest, Operation};
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{OptionalJsonBody, PathParams};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::Created;
use crate::api::http::write_context::UnrepeatableContext;
use crate::broker::Broker;
use crate::oidc::is_person_name;
use crate::store::{KeyHolder, KeyRecord, KeyRotation, StoreError};

pub(crate) async fn list(
    State(broker): State<Broker>,
    params: ListParams,
) -> Result<ListResponse<Vec<PakSummary>>, ErrorResponse> {
    let paks = broker.store.list_keys(params.page()).await?;
    Ok(params.respond(paks, |pak| pak.id))
}

pub(crate) async fn rotate_own_admin_key(
    State(broker): State<Broker>,
    sender: Sender,
    UnrepeatableContext(context): UnrepeatableContext,
    OptionalJsonBody(request): OptionalJsonBody<RotatePakRequest>,
) -> Result<Json<RotateAdminPakResponse>, ErrorResponse> {
    let KeyHolder::Admin(admin) = sender.actor.holder else { return Err(Denial::AdminRequired.into()) };
    check_not_person(&broker, admin).await?;
    let (pak, rotation) = sender.rotate(&broker, request, sender.actor.holder).await?;
    broker.store.rotate_admin_key(context, admin, rotation).await?;
    Ok(Json(RotateAdminPakResponse { pak: pak.reveal() }))
}

pub(crate) async fn rotate_admin_key(
    State(broker): State<Broker>,
    sender: Sender,
    PathParams(admin): PathParams<AdminId>,
    UnrepeatableContext(context): UnrepeatableContext,
    OptionalJsonBody(request): OptionalJsonBody<RotatePakRequest>,
) -> Result<Json<AdminWithPak>, ErrorResponse> {
    check_not_person(&broker, admin).await?;
    let (pak, rotation) = sender.rotate(&broker, request, KeyHolder::Admin(admin)).await?;
    let admin = broker.store.rotate_admin_key(context, admin, rotation).await?;
    Ok(Json(AdminWithPak { admin, pak: pak.reveal() }))
}

pub(crate) async fn rotate_agent_key(
    State(broker): State<Broker>,
    sender: Sender,
    PathParams(agent): PathParams<AgentId>,
    UnrepeatableContext(context): UnrepeatableContext,
    OptionalJsonBody(request): OptionalJsonBody<RotatePakRequest>,
) -> Result<Json<RotateAgentPakResponse>, ErrorResponse> {
    sender.actor.check_admin_or_agent(agent)?;
    let (pak, rotation) = sender.rotate(&broker, request, KeyHolder::Agent(agent)).await?;
    let agent = broker.store.rotate_agent_key(context, agent, rotation).await?;
    Ok(Json(RotateAgentPakResponse { agent: broker.memory.heartbeats.apply_to(agent), pak: pak.reveal() }))
}

pub(crate) async fn rotate_generator_key(
    State(broker): State<Broker>,
    sender: Sender,
    PathParams(generator): PathParams<GeneratorId>,
    UnrepeatableContext(context): UnrepeatableContext,
    OptionalJsonBody(request): OptionalJsonBody<RotatePakRequest>,
) -> Result<Created<CreateGeneratorResponse>, ErrorResponse> {
    sender.actor.check_admin_or_generator(generator, Denial::GeneratorNotOwned)?;
    let (pak, rotation) = sender.rotate(&broker, request, KeyHolder::Generator(generator)).await?;
    let generator = broker.store.rotate_generator_key(context, generator, rotation).await?;
    Ok(Created(CreateGeneratorResponse { generator, pak: pak.reveal() }))
}

/// Checks that an administrator is not a person who logs in with tokens: a key would stay valid after the provider has locked the
/// person.
async fn check_not_person(broker: &Broker, admin: AdminId) -> Result<(), ErrorResponse> {
    let name = broker.store.get_admin(admin).await?.name;
    if is_person_name(&name) {
        let message = format!("{name} logs in with tokens and has no key: create an administrator with another name");
        return Err(ErrorResponse::bad_request("person_without_key", message));
    }
    Ok(())
}

/// Generates a key that expires at a time.
pub(crate) fn new_key(broker: &Broker, expires_at: Option<Timestamp>) -> Result<(Pak, KeyRecord), ErrorResponse> {
    if expires_at.is_some_and(|end| end <= broker.clock.now()) {
        return Err(ErrorResponse::bad_request("invalid_expiry", "key_expires_at must be in the future"));
    }
    let pak = broker.generate_pak();
    let key = KeyRecord { expires_at, ..KeyRecord::from(&pak) };
    Ok((pak, key))
}

/// Sender of a rotation, with the key that was sent.
pub(crate) struct Sender {
    actor: Actor,
    key: SenderKey,
}

impl<S: Send + Sync> FromRequestParts<S> for Sender {
    type Rejection = ErrorResponse;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ErrorResponse> {
        let actor = Actor::from_request_parts(parts, state).await?;
        Ok(Self { actor, key: SenderKey::from_request_parts(parts, state).await? })
    }
}

/// Describes nothing: every operation under the API has a key.
impl DescribeRequest for Sender {
    fn describe(_operation: &mut Operation, _schemas: &mut SchemaGenerator) {}
}

impl Sender {
    /// Generates a key for a holder, and returns it with the rotation to it.
    async fn rotate(
        &self,
        broker: &Broker,
        request: RotatePakRequest,
        holder: KeyHolder,
    ) -> Result<(Pak, KeyRotation), ErrorResponse> {
        let grace = request.grace_seconds.unwrap_or(0);
        if grace > GRACE_SECONDS_MAX {
            let message = format!("grace_seconds must be at most {GRACE_SECONDS_MAX}");
            return Err(ErrorResponse::bad_request("invalid_grace_seconds", message));
        }
        let expected = self.list_replaced_keys(broker, holder).await?;
        let end = broker.clock.now().checked_add(SignedDuration::from_secs(i64::from(grace)));
        let previous_until = (grace > 0).then(|| end.unwrap_or(Timestamp::MAX));
        let (pak, key) = new_key(broker, request.key_expires_at)?;
        Ok((pak, KeyRotation { expected, key, previous_until }))
    }

    /// Returns the keys that a rotation replaces. The store compares them again: of concurrent rotations one wins. A
    /// holder that rotates its own key must have sent one of them; a key from the cache may have been replaced already,
    /// and one in its grace period was.
    async fn list_replaced_keys(&self, broker: &Broker, holder: KeyHolder) -> Result<Vec<PakDigest>, ErrorResponse> {
        let keys = broker.store.list_keys_of_holder(holder).await?;
        if self.actor.holder == holder
            && !keys.iter().any(|digest| self.key.0.as_ref().is_some_and(|key| key.matches(digest)))
        {
            return Err(StoreError::KeyChanged.into());
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use axum::body::Body;
    use http::{Request, StatusCode};
    use sindri_model::wire::{Admin, AdminRole};
    use sindri_model::{Clock, Entropy};
    use tower::ServiceExt as _;

    use super::*;
    use crate::api::router;
    use crate::oidc::person_name;
    use crate::store::SqliteStore;

    #[tokio::test]
    async fn a_person_gets_no_key() {
        let calls = AtomicU8::new(0);
        let entropy = Entropy::new(move |bytes| bytes.fill(calls.fetch_add(1, Ordering::Relaxed)));
        let clock = Clock::new(|| Timestamp::UNIX_EPOCH);
        let broker = Broker::start(SqliteStore::open(":memory:", None).unwrap(), clock, entropy).await.unwrap();
        let key = Pak::generate(&Entropy::new(|bytes| bytes.fill(7)));
        broker.create_admin_key(&key).await.unwrap();
        let person = Admin {
            id: AdminId::generate(&Entropy::new(|bytes| bytes.fill(9))),
            created_at: Timestamp::UNIX_EPOCH,
            name: person_name("anna"),
            role: AdminRole::Admin,
            key_expires_at: None,
        };
        let id = person.id;
        assert!(broker.store.record_person(broker.write_context(), person).await.unwrap());
        let request = Request::post(format!("/api/v1/admins/{id}/rotate-pak")).header("authorization", key.reveal());
        let response = router(broker.clone()).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        assert!(broker.store.list_keys_of_holder(KeyHolder::Admin(id)).await.unwrap().is_empty());
    }
}
