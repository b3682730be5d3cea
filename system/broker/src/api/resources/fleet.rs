//! Fleet: the status of agents for operators.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use sindri_model::AgentId;
use sindri_model::wire::{AgentFleetStatusResponse, AgentStatus, FleetAgentRecord};

use super::owner_filter::OwnerFilter;
use crate::api::http::error_response::ErrorResponse;
use crate::api::http::extract::{PathParams, QueryParams};
use crate::api::http::pagination::{ListParams, ListResponse};
use crate::broker::Broker;
use crate::store::FleetEntry;

const RECENT_EVENTS_MAX: i64 = 20;

pub(crate) async fn list(
    State(broker): State<Broker>,
    QueryParams(filter): QueryParams<OwnerFilter>,
    params: ListParams,
) -> Result<ListResponse<Vec<FleetAgentRecord>>, ErrorResponse> {
    let entries = broker.store.list_fleet(filter.scope(), params.page()).await?;
    let now = broker.clock.now();
    let records = entries.into_iter().map(|entry| to_record(&broker, entry, now)).collect();
    Ok(params.respond(records, |record: &FleetAgentRecord| record.agent_id))
}

pub(crate) async fn read(
    State(broker): State<Broker>,
    PathParams(agent): PathParams<AgentId>,
) -> Result<Json<AgentFleetStatusResponse>, ErrorResponse> {
    let entry = broker.store.get_fleet_entry(agent).await?;
    let recent_events = broker.store.list_recent_events(agent, RECENT_EVENTS_MAX).await?;
    Ok(Json(AgentFleetStatusResponse { record: to_record(&broker, entry, broker.clock.now()), recent_events }))
}

fn to_record(broker: &Broker, entry: FleetEntry, now: Timestamp) -> FleetAgentRecord {
    let agent = broker.memory.heartbeats.apply_to(entry.agent);
    // The clocks of two brokers differ, and a clock may be set back: a negative age becomes 0.
    let seconds_since = |time: Option<Timestamp>| time.map(|time| now.duration_since(time).as_secs().max(0));
    let status = match (agent.deleted_at, agent.status) {
        (Some(_), _) => "DELETED",
        (None, AgentStatus::Active) => "ACTIVE",
        (None, AgentStatus::Inactive) => "INACTIVE",
    };
    FleetAgentRecord {
        agent_id: agent.id,
        name: agent.name,
        cluster_name: agent.cluster_name,
        status: status.to_owned(),
        last_heartbeat: agent.last_heartbeat,
        heartbeat_age_seconds: seconds_since(agent.last_heartbeat),
        last_event_at: entry.last_event_at,
        seconds_since_last_event: seconds_since(entry.last_event_at),
        pending_object_count: entry.pending,
        health_degraded: entry.degraded,
        health_failing: entry.failing,
        k8s_reachable: agent.k8s_reachable,
        k8s_api_latency_ms: agent.k8s_api_latency_ms,
        // This broker has no work orders and no WebSocket connections.
        pending_work_orders: 0,
        claimed_work_orders: 0,
        ws_connected: false,
        connected_since: None,
    }
}
