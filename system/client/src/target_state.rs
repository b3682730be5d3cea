//! The target state of an agent, believed only when it is whole.
//!
//! An agent acts on this answer, so everything that can be checked is checked here: the epoch is there, the
//! sequences ascend, no stack comes twice, and each text has its checksum.

use std::collections::BTreeSet;
use std::time::Duration;

use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sindri_model::wire::{AGENT_STATUS_HEADER, AgentStatus, DeploymentObject, EPOCH_HEADER};
use sindri_model::{AgentId, Checksum, Epoch};

use crate::client::{Answered, Call, Client};
use crate::error::ClientError;

/// What the broker wants of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetStateResponse {
    /// The same as the answer that had the ETag.
    Unchanged {
        /// The agent's own status, if the broker said it.
        status: Option<AgentStatus>,
    },
    /// The full desired set. What is missing in it means nothing: removals are explicit.
    Changed {
        /// One object per stack, ascending by sequence.
        objects: Vec<DeploymentObject>,
        /// To be sent with the next poll.
        etag: Option<String>,
        /// The life of the broker's database.
        epoch: Epoch,
        /// The agent's own status, if the broker said it.
        status: Option<AgentStatus>,
    },
}

/// The longest that a broker is asked to wait: connections that are silent for longer are given up.
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Client {
    /// Fetches the target state of an agent; `etag` is that of the last answer.
    pub async fn target_state(&self, agent: AgentId, etag: Option<&str>) -> Result<TargetStateResponse, ClientError> {
        self.next_target_state(agent, etag, Duration::ZERO).await
    }

    /// The same, where the broker may hold its answer back until there is a new one: for as long as `wait`, and for a
    /// minute at most.
    pub async fn next_target_state(
        &self,
        agent: AgentId,
        etag: Option<&str>,
        wait: Duration,
    ) -> Result<TargetStateResponse, ClientError> {
        self.next_target_state_or_status(agent, etag, None, wait).await
    }

    /// The same, where the broker does not hold its answer back while the agent has another status than `status`.
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
                call.patience = wait;
            }
            let value = HeaderValue::try_from(etag).map_err(|_| call.malformed("the ETag is not one of a broker"))?;
            call = call.with_header(IF_NONE_MATCH, value);
        }
        if let Some(status) = status {
            let value = HeaderValue::from_static(status.as_str());
            call = call.with_header(HeaderName::from_static(AGENT_STATUS_HEADER), value);
        }
        let answered = self.send(&call).await?;
        match answered.status {
            StatusCode::OK => changed(&call, &answered),
            StatusCode::NOT_MODIFIED if etag.is_some() => {
                Ok(TargetStateResponse::Unchanged { status: own_status(&answered.headers) })
            }
            status => Err(call.malformed(format!("status {status} is not one of a target state"))),
        }
    }
}

fn changed(call: &Call, answered: &Answered) -> Result<TargetStateResponse, ClientError> {
    let epoch = epoch(&answered.headers).ok_or_else(|| call.malformed(format!("it has no {EPOCH_HEADER}")))?;
    let objects: Vec<DeploymentObject> = call.read(&answered.body)?;
    check(&objects).map_err(|reason| call.malformed(reason))?;
    let etag = answered.headers.get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(TargetStateResponse::Changed { objects, etag, epoch, status: own_status(&answered.headers) })
}

fn epoch(headers: &HeaderMap) -> Option<Epoch> {
    headers.get(EPOCH_HEADER)?.to_str().ok()?.parse().ok().map(Epoch)
}

/// The status that a broker tells an agent that it has. Another broker may say nothing, or something else.
pub(crate) fn own_status(headers: &HeaderMap) -> Option<AgentStatus> {
    AgentStatus::named(headers.get(AGENT_STATUS_HEADER)?.to_str().ok()?)
}

fn check(objects: &[DeploymentObject]) -> Result<(), String> {
    let mut stacks = BTreeSet::new();
    for object in objects {
        if !stacks.insert(object.stack_id) {
            return Err(format!("stack {} comes twice", object.stack_id));
        }
        if Checksum::compute(&object.yaml_content) != object.yaml_checksum {
            return Err(format!("the text of revision {} does not have its checksum", object.id));
        }
    }
    match objects.windows(2).find(|pair| pair[0].sequence_id >= pair[1].sequence_id) {
        Some(pair) => Err(format!("sequence {} comes before {}", pair[0].sequence_id, pair[1].sequence_id)),
        None => Ok(()),
    }
}
