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
use super::login_failures::{record_failure, reject_credential};
use crate::broker::Broker;
use crate::oidc::{OidcProvider, Person, TokenError};
use crate::store::{KeyAccess, KeyHolder, LoginFailure, WriteContext};

/// Beginning of the names of people, before the subject.
const NAME_PREFIX: &str = "oidc:";

/// Verifies a token; returns its person as a holder, what the token allows, and the name.
pub(crate) async fn identify_person(
    broker: &Broker,
    provider: &OidcProvider,
    token: &str,
    client: Option<IpAddr>,
) -> Result<(KeyHolder, KeyAccess, String), ErrorResponse> {
    let person = match provider.verify(token, broker.clock.now()).await {
        Ok(person) => person,
        Err(error) => return Err(refuse(broker, client, &error)),
    };
    let id = derive_id(provider.issuer(), &person.subject);
    let name = format!("{NAME_PREFIX}{}", person.subject);
    if !broker.memory.people.is_known(id, Instant::now()) {
        record_person(broker, id, &name, &person, client).await?;
    }
    let access = match person.role {
        AdminRole::Admin => KeyAccess::Full,
        AdminRole::Reader => KeyAccess::ReadOnly,
    };
    Ok((KeyHolder::Admin(id), access, name))
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
    if !broker.store.record_person(context, admin).await? {
        let message = format!("{name} was deleted by an administrator, or another administrator has that name");
        return Err(ErrorResponse::new(StatusCode::FORBIDDEN, "person_deleted", message));
    }
    broker.memory.people.insert(id, Instant::now());
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
        | TokenError::Algorithm
        | TokenError::UnknownKey
        | TokenError::Signature
        | TokenError::Issuer
        | TokenError::Audience
        | TokenError::NotYetValid
        | TokenError::Subject => {
            record_failure(broker, client, None, LoginFailure::InvalidToken);
            reject_credential(broker, client, ErrorResponse::unauthorized(&message).with_code("invalid_token"))
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
