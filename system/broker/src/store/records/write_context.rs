//! Data that accompanies every write.

use std::net::IpAddr;

use jiff::Timestamp;
use sindri_model::Entropy;
use sindri_model::wire::SubmittingRequest;

use super::keys::KeyHolder;

/// Data that accompanies every write: the time, the actor, and the source of new ids.
#[derive(Clone, Debug)]
pub struct WriteContext {
    /// Time of the write.
    pub time: Timestamp,
    /// Source of the ids that the write creates.
    pub entropy: Entropy,
    /// Holder of the key that made the request. None: the broker itself.
    pub actor: Option<KeyHolder>,
    /// Address from which the request came.
    pub peer: Option<IpAddr>,
    /// `User-Agent` header of the request.
    pub user_agent: Option<String>,
    /// Request that makes the write; revisions that it submits have it.
    pub request: Option<SubmittingRequest>,
    /// `Idempotency-Key` header. The same key of the same actor identifies a repeated request.
    pub idempotency_key: Option<String>,
    /// Process of the agent that made the request, if it said so.
    pub process: Option<String>,
}

impl WriteContext {
    /// Creates the context of a write that the broker makes on its own behalf.
    pub fn system(time: Timestamp, entropy: Entropy) -> Self {
        Self {
            time,
            entropy,
            actor: None,
            peer: None,
            user_agent: None,
            request: None,
            idempotency_key: None,
            process: None,
        }
    }
}
