//! Ids as newtypes over UUIDs, so that the id of a stack cannot be used as that of an agent.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::entropy::Entropy;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Creates a random id.
            pub fn generate(entropy: &Entropy) -> Self {
                Self(uuid::Builder::from_random_bytes(entropy.bytes()).into_uuid())
            }

            /// Creates an id that begins with the time, so that new rows are appended to an index instead of being spread
            /// over its pages.
            pub fn generate_at(at: jiff::Timestamp, entropy: &Entropy) -> Self {
                let millis = u64::try_from(at.as_millisecond()).unwrap_or(0);
                Self(uuid::Builder::from_unix_timestamp_millis(millis, &entropy.bytes()).into_uuid())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )*};
}

ids! {
    /// Id of an administrator.
    AdminId;
    /// Id of an agent, and so of a cluster.
    AgentId;
    /// Id of an approval: a plan that an agent holds until a decision.
    ApprovalId;
    /// Id of an entry of the audit log.
    AuditId;
    /// Id of a delivery: one event for one webhook subscription.
    DeliveryId;
    /// Id of an event.
    EventId;
    /// Id of a generator: a client that submits stacks.
    GeneratorId;
    /// Id of one agent's health report about one revision.
    HealthId;
    /// Id of a target, a label, an annotation or a registration.
    LinkId;
    /// Id of an access key; reveals nothing about its secret.
    PakId;
    /// Id of a proposal: a text for a stack that is not submitted.
    ProposalId;
    /// Id of a revision, which the wire type calls deployment object.
    RevisionId;
    /// Id of a stack.
    StackId;
    /// Id of a webhook subscription.
    WebhookId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_ordered_by_time_also_as_texts() {
        let entropy = Entropy::new(|bytes| bytes.fill(0xff));
        let low = Entropy::new(|bytes| bytes.fill(0));
        let at = |millis| jiff::Timestamp::from_millisecond(millis).unwrap();
        let (first, second) = (RevisionId::generate_at(at(1_000), &entropy), RevisionId::generate_at(at(1_001), &low));
        assert!(first < second);
        assert!(first.to_string() < second.to_string());
        assert_ne!(RevisionId::generate_at(at(1_000), &low), first, "ids of the same time differ");
        assert_eq!(first.to_string().parse(), Ok(first));
    }
}
