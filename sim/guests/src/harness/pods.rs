//! Nodes and pods of an API server that has them, and their failures.

use serde_json::json;
use sindri_apiserver::{ApiServer, PodRule};
use sindri_world::{trace, wall_time};

use super::world::World;
use crate::client::ResourceKind;
use crate::object::{name, text};

/// Kind of a node.
pub const NODE: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Node", plural: "nodes" };
/// Kind of a pod.
pub const POD: ResourceKind = ResourceKind { group: "", version: "v1", kind: "Pod", plural: "pods" };

impl World {
    /// Sets the outcome of the containers that a rule matches, also of those that run. A newer rule comes first.
    pub fn set_pod_outcome(&mut self, api: &str, rule: PodRule) {
        trace::record("world", &format!("~ pods of {api}: {rule:?}"));
        self.change_server(api, |machine| machine.add_pod_rule(wall_time(), rule));
    }

    /// Removes every rule for pods: all containers run from now on.
    pub fn clear_pod_outcomes(&mut self, api: &str) {
        trace::record("world", &format!("~ pods of {api} run"));
        self.change_server(api, |machine| machine.clear_pod_rules(wall_time()));
    }

    /// Takes a node out of service: it gets no new pods, and its pods are deleted, as the control plane does some minutes
    /// after the last heartbeat of a node. The API server itself knows no heartbeats.
    pub fn fail_node(&mut self, api: &str, node: &str) {
        trace::record("world", &format!("~ node {node} of {api} fails"));
        self.edit(api, NODE, "", node, |node| node["spec"]["unschedulable"] = json!(true));
        for pod in self.list(api, POD) {
            if text(&pod, "/spec/nodeName") == node {
                self.delete(api, POD, text(&pod, "/metadata/namespace"), name(&pod));
            }
        }
    }

    /// Ends [`World::fail_node`].
    pub fn repair_node(&mut self, api: &str, node: &str) {
        trace::record("world", &format!("~ node {node} of {api} is back"));
        self.edit(api, NODE, "", node, |node| node["spec"]["unschedulable"] = json!(false));
    }

    fn change_server(&mut self, api: &str, change: impl FnOnce(&mut ApiServer)) {
        let (server, host) = (self.api(api).server.clone(), self.api(api).host);
        server.with(change);
        self.engine.wake(host);
        self.collect_writes();
    }
}
