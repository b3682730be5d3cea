//! Ids as newtypes over UUIDs, so that a stack is never taken for an agent.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Entropy;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A fresh random id.
            pub fn mint(entropy: &Entropy) -> Self {
                Self(uuid::Builder::from_random_bytes(entropy.bytes()).into_uuid())
            }

            /// A fresh id that begins with the time. What is made after another comes after it in an index, where random
            /// ones would each touch a page of their own.
            pub fn mint_at(at: jiff::Timestamp, entropy: &Entropy) -> Self {
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
    /// One agent, and so one cluster.
    AgentId;
    /// One plan that an agent holds back until somebody decides.
    ApprovalId;
    /// One entry of the audit log.
    AuditId;
    /// One message to one subscriber.
    DeliveryId;
    /// One recorded event.
    EventId;
    /// One generator: who submits stacks.
    GeneratorId;
    /// What one agent last said about the health of one revision.
    HealthId;
    /// A row that only links or labels: a target, a label, an annotation, a registration.
    LinkId;
    /// One access key; says nothing about its secret.
    PakId;
    /// One deployment object: an immutable revision of a stack.
    RevisionId;
    /// One stack.
    StackId;
    /// One subscription to events.
    WebhookId;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_later_things_come_after_those_of_earlier_ones_also_as_texts() {
        let entropy = Entropy::new(|bytes| bytes.fill(0xff));
        let low = Entropy::new(|bytes| bytes.fill(0));
        let at = |millis| jiff::Timestamp::from_millisecond(millis).unwrap();
        let (first, second) = (RevisionId::mint_at(at(1_000), &entropy), RevisionId::mint_at(at(1_001), &low));
        assert!(first < second);
        assert!(first.to_string() < second.to_string());
        assert_ne!(RevisionId::mint_at(at(1_000), &low), first, "what is made at the same time differs");
        assert_eq!(first.to_string().parse(), Ok(first));
    }
}
