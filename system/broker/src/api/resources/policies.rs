//! Policies: annotations of stacks that tell an agent how to treat them.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderName;
use schemars::SchemaGenerator;
use sindri_model::AgentId;
use sindri_model::wire::{StackPolicy, TARGET_VERSION_HEADER, TargetVersion};

use crate::api::http::authentication::Actor;
use crate::api::http::describe::{DescribeResponse, Operation};
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::PathParams;
use crate::api::http::large_list::{LargeList, LargeListResponse};
use crate::api::http::pagination::ListParams;
use crate::api::http::target_version::{describe_target_version, to_header};
use crate::broker::Broker;
use crate::store::policy_bytes;

/// A page of policies, with the version of the target state to which they belong.
pub(crate) struct PoliciesResponse(TargetVersion, LargeListResponse<Vec<StackPolicy>>);

impl IntoResponse for PoliciesResponse {
    fn into_response(self) -> Response {
        let version = (HeaderName::from_static(TARGET_VERSION_HEADER), to_header(self.0));
        ([version], self.1).into_response()
    }
}

impl DescribeResponse for PoliciesResponse {
    fn describe(operation: &mut Operation, schemas: &mut SchemaGenerator) {
        LargeListResponse::<Vec<StackPolicy>>::describe(operation, schemas);
        if let Some(response) = operation.responses.get_mut(&200) {
            response["headers"][TARGET_VERSION_HEADER] = describe_target_version();
        }
    }
}

pub(crate) async fn list(
    State(broker): State<Broker>,
    actor: Actor,
    PathParams(agent): PathParams<AgentId>,
    params: ListParams,
    permit: LargeList,
) -> Result<PoliciesResponse, ErrorResponse> {
    actor.check_admin_or_agent(agent)?;
    let (version, policies) = broker.store.list_policies(agent, params.page()).await?;
    let page = params.respond_sized(policies, |policy| policy.stack_id, policy_bytes);
    Ok(PoliciesResponse(version, permit.serialize(&broker, page).await?))
}
