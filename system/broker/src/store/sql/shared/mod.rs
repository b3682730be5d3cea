//! Parts that every operation uses: the transaction, the counter, the audit log, idempotency keys and the outbox.

pub(crate) mod audit;
pub(crate) mod epoch;
pub(crate) mod idempotency;
pub(crate) mod lookup;
pub(crate) mod outbox;
pub(crate) mod session;
