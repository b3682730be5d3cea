//! The target state of an agent.
//!
//! An agent acts on this response, so it is validated here: it has an epoch, sequences ascend, no stack occurs twice,
//! and each bundle has its checksum.

use std::collections::BTreeSet;
use std::time::Duration;

use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sindri_model::wire::{AGENT_STATUS_HEADER, AgentStatus, DeploymentObject, EPOCH_HEADER};
use sindri_model::{AgentId, Checksum, Epoch};

use crate::client::{Call, Client, CompleteResponse};
use crate::error::ClientError;

/// Response to a poll of an agent's target state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetStateResponse {
    /// Unchanged since the response with the ETag.
    Unchanged {
        /// Status of the agent, if the response has it.
        status: Option<AgentStatus>,
    },
    /// The complete target state. Removals are explicit: the absence of a stack means nothing.
    Changed {
        /// One revision per stack, ascending by sequence.
        objects: Vec<DeploymentObject>,
        /// ETag for the next poll.
        etag: Option<String>,
        /// Epoch of the broker's database.
        epoch: Epoch,
        /// Status of the agent, if the response has it.
        status: Option<AgentStatus>,
    },
}

/// Maximum time for which the broker holds a poll: connections that are silent for longer are closed.
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Client {
    /// Fetches the target state of an agent; `etag` is that of the last response.
    pub async fn target_state(&self, agent: AgentId, etag: Option<&str>) -> Result<TargetStateResponse, ClientError> {
        self.next_target_state(agent, etag, Duration::ZERO).await
    }

    /// Fetches the target state; the broker may hold the request until the target state changes, for at most `wait` or
    /// one minute.
    pub async fn next_target_state(
        &self,
        agent: AgentId,
        etag: Option<&str>,
        wait: Duration,
    ) -> Result<TargetStateResponse, ClientError> {
        self.next_target_state_or_status(agent, etag, None, wait).await
    }

    /// Like [`Self::next_target_state`], but the broker responds at once if the agent's status is not `status`.
    pub async fn next_target_state_or_status(
        &self,
        agent: AgentId,
        etag: Option<&str>,
        status: Option<AgentStatus>,
        wait: Duration,
    ) -> Result<TargetStateResponse, ClientError> {
        let operation = format!("fetch the target state of agent {agent}");
        let mut call = Call::get(format!("/agents/{agent}/target-state"), operation);
        if let Some(etag) = etag {
            let wait = wait.min(WAIT_MAX);
            if wait.as_secs() > 0 {
                call.path.push_str(&format!("?wait={}", wait.as_secs()));
                call.hold = wait;
            }
            let value =
                HeaderValue::try_from(etag).map_err(|_| call.malformed("the ETag is not a valid header value"))?;
            call = call.with_header(IF_NONE_MATCH, value);
        }
        if let Some(status) = status {
            let value = HeaderValue::from_static(status.as_str());
            call = call.with_header(HeaderName::from_static(AGENT_STATUS_HEADER), value);
        }
        let response = self.send(&call).await?;
        match response.status {
            StatusCode::OK => changed(&call, &response),
            StatusCode::NOT_MODIFIED if etag.is_some() => {
                Ok(TargetStateResponse::Unchanged { status: own_status(&response.headers) })
            }
            status => Err(call.malformed(format!("unexpected status {status}"))),
        }
    }
}

fn changed(call: &Call, response: &CompleteResponse) -> Result<TargetStateResponse, ClientError> {
    let epoch = epoch(&response.headers).ok_or_else(|| call.malformed(format!("it has no {EPOCH_HEADER}")))?;
    let objects: Vec<DeploymentObject> = call.read(&response.body)?;
    check(&objects).map_err(|reason| call.malformed(reason))?;
    let etag = response.headers.get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(TargetStateResponse::Changed { objects, etag, epoch, status: own_status(&response.headers) })
}

fn epoch(headers: &HeaderMap) -> Option<Epoch> {
    headers.get(EPOCH_HEADER)?.to_str().ok()?.parse().ok().map(Epoch)
}

/// Returns the agent's status from the headers, if the broker sent a known one.
pub(crate) fn own_status(headers: &HeaderMap) -> Option<AgentStatus> {
    AgentStatus::named(headers.get(AGENT_STATUS_HEADER)?.to_str().ok()?)
}

fn check(objects: &[DeploymentObject]) -> Result<(), String> {
    let mut stacks = BTreeSet::new();
    for object in objects {
        if !stacks.insert(object.stack_id) {
            return Err(format!("stack {} occurs twice", object.stack_id));
        }
        if Checksum::compute(&object.yaml_content) != object.yaml_checksum {
            return Err(format!("the bundle of revision {} does not match its checksum", object.id));
        }
    }
    match objects.windows(2).find(|pair| pair[0].sequence_id >= pair[1].sequence_id) {
        Some(pair) => Err(format!("sequence {} comes before {}", pair[0].sequence_id, pair[1].sequence_id)),
        None => Ok(()),
    }
}
