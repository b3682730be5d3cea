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
