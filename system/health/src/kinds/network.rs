//! Services and Ingresses.

use crate::health::Health;
use crate::object::Object;

fn has_address(object: Object<'_>) -> bool {
    !object.list(&["status", "loadBalancer", "ingress"]).is_empty()
}

/// Only a load balancer needs a controller; every other Service works as soon as it exists.
pub(super) fn assess_service(object: Object<'_>) -> Health {
    match object.text(&["spec", "type"]) {
        Some("LoadBalancer") if has_address(object) => Health::ready("LoadBalancerReady", ""),
        Some("LoadBalancer") => Health::progressing("NoAddress", "its load balancer has no address yet"),
        Some(_) | None => Health::ready("Exists", ""),
    }
}

/// Ready without an address: many controllers never write one.
pub(super) fn assess_ingress(object: Object<'_>) -> Health {
    let message = if has_address(object) { "" } else { "no controller has given it an address" };
    Health::ready("Exists", message)
}
