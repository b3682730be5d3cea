//! Authentication of people by tokens of an OpenID Connect provider.
//!
//! A person is an administrator without a key: its record is created with the first token, so that the audit log has its name, and its
//! role is the one that the token gives.

use std::net::IpAddr;

use http::StatusCode;
use sindri_model::wire::{Admin, AdminRole};
use sindri_model::{AdminId, Checksum, Entropy};
use tokio::time::Instant;

use super::error_response::ErrorResponse;
use super::login_failures::{record_failure, reject_credential, too_many_failures};
use crate::broker::Broker;
use crate::oidc::{OidcProvider, Person, TokenError, person_name};
use crate::store::{KeyAccess, KeyHolder, LoginFailure, WriteContext};
use crate::throttle::ThrottleSource;

/// Verifies a token; returns its person as a holder, what the token allows, and the name.
pub(crate) async fn identify_person(
    broker: &Broker,
    provider: &OidcProvider,
    token: &str,
    client: Option<IpAddr>,
) -> Result<(KeyHolder, KeyAccess, String), ErrorResponse> {
    let verified = match provider.verify_cached(token, broker.clock.now()) {
        Some(verified) => verified,
        None => verify_after_fetch(broker, provider, token, client).await?,
    };
    let person = verified.map_err(|error| refuse(broker, client, &error))?;
    let id = derive_id(provider.issuer(), &person.subject);
    let name = person_name(&person.subject);
    if !broker.memory.people.is_known(id, Instant::now()) {
        record_person(broker, id, &name, &person, client).await?;
    }
    let access = match person.role {
        AdminRole::Admin => KeyAccess::Full,
        AdminRole::Reader => KeyAccess::ReadOnly,
    };
    Ok((KeyHolder::Admin(id), access, name))
}

/// Verifies a token whose key must be fetched first. A source that has sent too many wrong keys or tokens must not cause a fetch.
async fn verify_after_fetch(
    broker: &Broker,
    provider: &OidcProvider,
    token: &str,
    client: Option<IpAddr>,
) -> Result<Result<Person, TokenError>, ErrorResponse> {
    let source = client.map(ThrottleSource::from_address);
    if let Some(wait) = source.and_then(|source| broker.throttle.check_unknown(source, Instant::now())) {
        return Err(too_many_failures(broker, wait));
    }
    Ok(provider.verify(token, broker.clock.now()).await)
}

async fn record_person(
    broker: &Broker,
    id: AdminId,
    name: &str,
    person: &Person,
    client: Option<IpAddr>,
) -> Result<(), ErrorResponse> {
    let context = WriteContext { actor: Some(KeyHolder::Admin(id)), peer: client, ..broker.write_context() };
    let admin = Admin { id, created_at: context.time, name: name.to_owned(), role: person.role, key_expires_at: None };
    let generation = broker.memory.people.generation();
    if !broker.store.record_person(context, admin).await? {
        let message = format!("{name} was deleted by an administrator, or another administrator has that name");
        return Err(ErrorResponse::new(StatusCode::FORBIDDEN, "person_deleted", message));
    }
    broker.memory.people.insert(id, Instant::now(), generation);
    Ok(())
}

fn refuse(broker: &Broker, client: Option<IpAddr>, error: &TokenError) -> ErrorResponse {
    let message = format!("the token is not accepted: {error}");
    match error {
        TokenError::NoRole => ErrorResponse::new(StatusCode::FORBIDDEN, "no_role", message),
        TokenError::NoKeys => ErrorResponse::new(StatusCode::SERVICE_UNAVAILABLE, "oidc_unavailable", message),
        TokenError::Expired => {
            record_failure(broker, client, None, LoginFailure::Expired);
            ErrorResponse::new(StatusCode::UNAUTHORIZED, "token_expired", message)
        }
        TokenError::Malformed
        | TokenError::AccessToken
        | TokenError::Algorithm
        | TokenError::UnknownKey
        | TokenError::Signature
        | TokenError::Issuer
        | TokenError::Audience
        | TokenError::AuthorizedParty
        | TokenError::NotYetValid
        | TokenError::Subject => {
            record_failure(broker, client, None, LoginFailure::InvalidToken);
            reject_credential(broker, client, None, ErrorResponse::unauthorized(&message).with_code("invalid_token"))
        }
    }
}

/// Returns the id of a person: always the same one, on every broker.
fn derive_id(issuer: &str, subject: &str) -> AdminId {
    let digest = Checksum::compute(&format!("{issuer}\n{subject}"));
    let digest = hex::decode(digest.as_str()).unwrap_or_default();
    AdminId::generate(&Entropy::new(move |bytes| {
        bytes.iter_mut().zip(digest.iter()).for_each(|(byte, digit)| *byte = *digit);
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::response::IntoResponse;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use jiff::Timestamp;
    use sindri_model::Clock;

    use super::*;
    use crate::oidc::{FetchDocument, OidcSettings};
    use crate::store::SqliteStore;

    #[tokio::test]
    async fn a_source_with_too_many_failures_does_not_wait_for_keys() {
        let settings = OidcSettings {
            issuer: "https://id.example".to_owned(),
            audience: "sindri".to_owned(),
            role_claim: "roles".to_owned(),
            admin_values: Vec::new(),
            reader_values: Vec::new(),
        };
        let fetch: FetchDocument = Arc::new(|_| Box::pin(std::future::pending()));
        let (clock, entropy) = (Clock::new(|| Timestamp::UNIX_EPOCH), Entropy::new(|bytes| bytes.fill(1)));
        let broker = Broker::start(SqliteStore::open(":memory:", None).unwrap(), clock, entropy).await.unwrap();
        let broker = broker.with_oidc(OidcProvider::new(settings, fetch));
        let client = IpAddr::from([192, 0, 2, 1]);
        let source = ThrottleSource::from_address(client);
        while broker.throttle.record_failure(source, None, Instant::now()).is_none() {}
        // The next lookup that is allowed to a throttled source is used, and not yet possible again.
        let soon = Instant::now() + std::time::Duration::from_secs(30);
        assert_eq!(broker.throttle.check_unknown(source, soon), None);
        let token = format!("{}.e30.AAAA", URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","kid":"a"}"#));
        let provider = broker.oidc.as_ref().unwrap();
        let error = identify_person(&broker, provider, &token, Some(client)).await.unwrap_err();
        assert_eq!(error.into_response().status(), StatusCode::TOO_MANY_REQUESTS);
    }
}
