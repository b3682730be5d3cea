//! Administrators. One with the role `reader` may read everything and change nothing.

use axum::Json;
use axum::extract::State;
use sindri_model::wire::{Admin, AdminRole, AdminWithPak, NewAdmin};
use sindri_model::{AdminId, Pak};

use super::keys::new_key;
use super::repeated_delete::succeed_without;
use super::validation::check_name;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{JsonBody, PathParams};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::api::http::response::{Created, NoContent};
use crate::api::http::write_context::CreateContext;
use crate::broker::Broker;
use crate::oidc::is_person_name;
use crate::store::{KeyRecord, RecordKind, WriteContext};

pub(crate) async fn create(
    State(broker): State<Broker>,
    CreateContext(context): CreateContext,
    JsonBody(request): JsonBody<NewAdmin>,
) -> Result<Created<AdminWithPak>, ErrorResponse> {
    check_new_name(&request.name)?;
    let (pak, key) = new_key(&broker, request.key_expires_at)?;
    let admin = Admin {
        id: AdminId::generate(&broker.entropy),
        created_at: context.time,
        name: request.name,
        role: request.role,
        key_expires_at: request.key_expires_at,
    };
    broker.store.create_admin(context, admin.clone(), key).await?;
    Ok(Created(AdminWithPak { admin, pak: pak.reveal() }))
}

/// Creates an administrator with all permissions for an operator who has access to the database, and no key that is valid.
pub async fn create_admin_offline(broker: &Broker, name: &str, pak: &Pak) -> Result<(), ErrorResponse> {
    check_new_name(name)?;
    let context = broker.write_context();
    let admin = Admin {
        id: AdminId::generate(&broker.entropy),
        created_at: context.time,
        name: name.to_owned(),
        role: AdminRole::Admin,
        key_expires_at: None,
    };
    Ok(broker.store.create_admin(context, admin, KeyRecord::from(pak)).await?)
}

fn check_new_name(name: &str) -> Result<(), ErrorResponse> {
    check_name("name", name)?;
    if is_person_name(name) {
        let message = "names that begin with oidc: are those of people who log in with tokens: choose another name";
        return Err(ErrorResponse::bad_request("reserved_name", message));
    }
    Ok(())
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    params: ListParams,
) -> Result<ListResponse<Vec<Admin>>, ErrorResponse> {
    let admins = broker.store.list_admins(params.page()).await?;
    Ok(params.respond(admins, |admin| admin.id))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    PathParams(admin): PathParams<AdminId>,
) -> Result<Json<Admin>, ErrorResponse> {
    Ok(Json(broker.store.get_admin(admin).await?))
}

pub(crate) async fn delete(
    State(broker): State<Broker>,
    PathParams(admin): PathParams<AdminId>,
    context: WriteContext,
) -> Result<NoContent, ErrorResponse> {
    succeed_without(RecordKind::Admin, broker.store.delete_admin(context, admin).await)?;
    Ok(NoContent)
}
