//! Amounts by the name of a limited resource.

use std::collections::BTreeMap;

use sindri_cel::Quantity;

/// Amounts by the name of the resource in a quota.
pub(super) type Usage = BTreeMap<String, Quantity>;

/// Returns a count.
pub(super) fn whole(number: usize) -> Quantity {
    Quantity::parse(&number.to_string()).unwrap_or_else(Quantity::zero)
}
