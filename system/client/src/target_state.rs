//! The target state of an agent.
//!
//! An agent acts on this response, so it is validated here: it has an epoch, sequences ascend, no stack occurs twice,
//! and each bundle has its checksum. Bundles that the client has already are left out of the response, and added here.
//!
//! A broker that is not Sindri's sends no epoch, no ETag, and by default only what the agent has not reported about. It is
//! asked for everything, of which the newest revision of each stack counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sindri_model::wire::{
    AGENT_STATUS_HEADER, AgentStatus, DeploymentObject, EPOCH_HEADER, HELD_REVISIONS_HEADER, HeldRevisions,
    PROPOSALS_HEADER, REQUESTS_HEADER, STACK_NAMES_HEADER, SubmittingRequests, TARGET_VERSION_HEADER, TargetVersion,
};
use sindri_model::{AgentId, Checksum, Epoch, RevisionId, Sequence, StackId};

use crate::broker_kind::BrokerKind;
use crate::client::{Call, Client, CompleteResponse};
use crate::error::ClientError;

/// Response to a poll of an agent's target state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetStateResponse {
    /// The target state has not changed since the response with the ETag of the request.
    Unchanged {
        /// Status of the agent, if the response has it.
        status: Option<AgentStatus>,
    },
    /// The complete target state. Removals are explicit: the absence of a stack means nothing.
    Changed {
        /// One revision per stack, ascending by sequence.
        objects: Vec<DeploymentObject>,
        /// ETag for the next poll, in its strong form: polls compare weakly.
        etag: Option<String>,
        /// Epoch of the broker's database.
        epoch: Epoch,
        /// Version of the target state, if the response has it.
        version: Option<TargetVersion>,
        /// Status of the agent, if the response has it.
        status: Option<AgentStatus>,
        /// Requests that submitted the newest revisions, as far as the response has them.
        requests: SubmittingRequests,
    },
}

/// State that an agent has, as a poll says it.
#[derive(Clone, Copy, Debug, Default)]
pub struct KnownState<'a> {
    /// ETag of the last response.
    pub etag: Option<&'a str>,
    /// Status of the agent; the broker responds at once if it is another one.
    pub status: Option<AgentStatus>,
    /// Number of the newest proposal that the agent has seen; the broker responds at once if there is a newer one.
    pub proposals: Option<Sequence>,
    /// Revisions whose bundles the broker leaves out.
    pub held: &'a [&'a DeploymentObject],
}

/// Response to a poll.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PollResponse {
    /// Target state.
    pub state: TargetStateResponse,
    /// Number of the newest proposal that the agent has not answered, if there is one.
    pub proposals: Option<Sequence>,
}

/// Maximum time for which the broker may wait before it responds to a poll: connections without traffic for longer
/// are closed.
const WAIT_MAX: Duration = Duration::from_secs(60);

impl Client {
    /// Fetches the target state of an agent; `etag` is that of the last response.
    pub async fn get_target_state(
        &self,
        agent: AgentId,
        etag: Option<&str>,
    ) -> Result<TargetStateResponse, ClientError> {
        self.poll_target_state(agent, etag, Duration::ZERO).await
    }

    /// Fetches the target state by long polling: the broker responds when the target state differs from `etag`, or
    /// after `wait`, at most one minute.
    pub async fn poll_target_state(
        &self,
        agent: AgentId,
        etag: Option<&str>,
        wait: Duration,
    ) -> Result<TargetStateResponse, ClientError> {
        let known = KnownState { etag, ..KnownState::default() };
        self.poll(agent, known, wait).await.map(|response| response.state)
    }

    /// Like [`Self::poll_target_state`], with everything that the agent has.
    pub async fn poll(
        &self,
        agent: AgentId,
        known: KnownState<'_>,
        wait: Duration,
    ) -> Result<PollResponse, ClientError> {
        let KnownState { etag, status, proposals, held } = known;
        if self.broker_kind.get() == BrokerKind::Published {
            return self.fetch_published_target_state(agent).await.map(without_proposals);
        }
        let operation = describe_fetch(agent);
        let mut call = Call::get(format!("/agents/{agent}/target-state"), operation);
        if let Some(etag) = etag {
            let wait = wait.min(WAIT_MAX);
            if wait.as_secs() > 0 {
                call.path.push_str(&format!("?wait={}", wait.as_secs()));
                call.long_poll_wait = wait;
            }
            let value = HeaderValue::try_from(etag)
                .map_err(|_| call.malformed_response("the ETag is not a valid header value"))?;
            call = call.with_header(IF_NONE_MATCH, value);
        }
        if let Some(status) = status {
            let value = HeaderValue::from_static(status.as_str());
            call = call.with_header(HeaderName::from_static(AGENT_STATUS_HEADER), value);
        }
        call = call.with_header(HeaderName::from_static(STACK_NAMES_HEADER), HeaderValue::from_static("1"));
        let held_revisions = HeldRevisions::from_revisions(held);
        if !held_revisions.is_empty() {
            let value = HeaderValue::try_from(held_revisions.to_string()).expect("digits and commas are valid");
            call = call.with_header(HeaderName::from_static(HELD_REVISIONS_HEADER), value);
        }
        if let Some(newest) = proposals {
            call = call.with_header(HeaderName::from_static(PROPOSALS_HEADER), HeaderValue::from(newest.0));
        }
        let response = match self.send(&call).await {
            // It was deactivated since its last poll, and does not get the target state.
            Err(error) if error.is_agent_inactive() && (etag.is_some() || status.is_some()) => {
                let status = Some(AgentStatus::Inactive);
                return Ok(without_proposals(TargetStateResponse::Unchanged { status }));
            }
            sent => sent?,
        };
        let state = match response.status {
            StatusCode::OK => match self.broker_kind.observe(response.headers.contains_key(EPOCH_HEADER)) {
                BrokerKind::Published => self.fetch_published_target_state(agent).await,
                BrokerKind::Sindri | BrokerKind::Unknown => parse_changed(&call, &response, held),
            },
            StatusCode::NOT_MODIFIED if etag.is_some() => {
                Ok(TargetStateResponse::Unchanged { status: read_agent_status(&response.headers) })
            }
            status => Err(call.malformed_response(format!("unexpected status {status}"))),
        };
        Ok(PollResponse { state: state?, proposals: read_proposals(&response.headers) })
    }
}

impl Client {
    /// Fetches the target state from a broker that has sent no epoch.
    async fn fetch_published_target_state(&self, agent: AgentId) -> Result<TargetStateResponse, ClientError> {
        let call = Call::get(format!("/agents/{agent}/target-state?mode=full"), describe_fetch(agent));
        let response = self.send_expecting(&call, StatusCode::OK).await?;
        if self.broker_kind.observe(response.headers.contains_key(EPOCH_HEADER)) == BrokerKind::Sindri {
            return parse_changed(&call, &response, &[]);
        }
        let objects = keep_newest(call.deserialize(&response.body)?);
        check_target_state(&objects).map_err(|reason| call.malformed_response(reason))?;
        let epoch = objects.last().map_or(Sequence::default(), |newest| newest.sequence_id).epoch();
        Ok(TargetStateResponse::Changed {
            objects,
            etag: None,
            epoch,
            version: None,
            status: None,
            requests: SubmittingRequests::default(),
        })
    }
}

/// Returns the response of a broker that has no proposals.
fn without_proposals(state: TargetStateResponse) -> PollResponse {
    PollResponse { state, proposals: None }
}

fn describe_fetch(agent: AgentId) -> String {
    format!("fetch the target state of agent {agent}")
}

/// Returns the newest revision of each stack, ascending by sequence.
fn keep_newest(mut objects: Vec<DeploymentObject>) -> Vec<DeploymentObject> {
    objects.sort_by_key(|object| object.sequence_id);
    let newest: BTreeMap<StackId, RevisionId> = objects.iter().map(|object| (object.stack_id, object.id)).collect();
    objects.retain(|object| newest.get(&object.stack_id) == Some(&object.id));
    objects
}

fn parse_changed(
    call: &Call,
    response: &CompleteResponse,
    held: &[&DeploymentObject],
) -> Result<TargetStateResponse, ClientError> {
    let epoch =
        read_epoch(&response.headers).ok_or_else(|| call.malformed_response(format!("it has no {EPOCH_HEADER}")))?;
    let mut objects: Vec<DeploymentObject> = call.deserialize(&response.body)?;
    add_held_bundles(&mut objects, held);
    check_target_state(&objects).map_err(|reason| call.malformed_response(reason))?;
    let etag = response.headers.get(ETAG).and_then(|value| value.to_str().ok());
    let etag = etag.map(|etag| etag.trim_start_matches("W/").to_owned());
    let requests = response.headers.get(REQUESTS_HEADER).and_then(|value| value.to_str().ok());
    let requests = requests.map(SubmittingRequests::from_header).unwrap_or_default();
    let (version, status) = (read_target_version(&response.headers), read_agent_status(&response.headers));
    Ok(TargetStateResponse::Changed { objects, etag, epoch, version, status, requests })
}

/// Adds the bundles that the broker left out. The check of the checksums finds one that was left out and is not held.
fn add_held_bundles(objects: &mut [DeploymentObject], held: &[&DeploymentObject]) {
    let held: BTreeMap<_, _> = held.iter().map(|held| (held.id, held)).collect();
    for object in objects.iter_mut().filter(|object| object.yaml_content.is_empty()) {
        if let Some(held) = held.get(&object.id).filter(|held| held.yaml_checksum == object.yaml_checksum) {
            object.yaml_content.clone_from(&held.yaml_content);
        }
    }
}

fn read_epoch(headers: &HeaderMap) -> Option<Epoch> {
    headers.get(EPOCH_HEADER)?.to_str().ok()?.parse().ok().map(Epoch)
}

/// Returns the version of the target state to which a response belongs; `None` if it is missing or malformed.
pub(crate) fn read_target_version(headers: &HeaderMap) -> Option<TargetVersion> {
    headers.get(TARGET_VERSION_HEADER)?.to_str().ok()?.parse().ok()
}

/// Returns the number of the newest proposal from the headers; `None` if it is missing or malformed.
fn read_proposals(headers: &HeaderMap) -> Option<Sequence> {
    headers.get(PROPOSALS_HEADER)?.to_str().ok()?.parse().ok().map(Sequence)
}

/// Returns the agent's status from the headers; `None` if it is missing or unknown.
pub(crate) fn read_agent_status(headers: &HeaderMap) -> Option<AgentStatus> {
    AgentStatus::from_name(headers.get(AGENT_STATUS_HEADER)?.to_str().ok()?)
}

fn check_target_state(objects: &[DeploymentObject]) -> Result<(), String> {
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
