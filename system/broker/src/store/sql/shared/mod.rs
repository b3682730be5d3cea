//! Parts that every operation uses: transactions, the counter, the audit log, idempotency keys and the outbox.

pub(crate) mod audit;
pub(crate) mod changes;
pub(crate) mod counter;
pub(crate) mod epoch;
pub(crate) mod idempotency;
pub(crate) mod lookup;
pub(crate) mod outbox;
pub(crate) mod session;
pub(crate) mod values;
