//! A world with the shapes controller: the cluster with the shapes, the external API with the resources, changes of
//! other clients, and the oracle.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sindri_guests::harness::{World, is_guest_write};
use sindri_guests::object::{is_deleting, name, text, uid};
use sindri_guests::shapes::{
    Checkpoint, Finalizer, Labels, OwnershipScheme, Prefix, RECORD_LABEL, RESOURCE, RecordForm, ResyncMode, SHAPE,
    ShapesController, crds,
};

/// API server with the shapes.
pub const CLUSTER: &str = "cluster";
/// API server with the resources.
pub const CLOUD: &str = "cloud";
/// Host of the controller.
pub const GUEST: &str = "shapes";
/// Namespace of all objects.
pub const NAMESPACE: &str = "default";

/// A variant of the controller, correct or wrong.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub scheme: Arc<dyn OwnershipScheme>,
    pub resync: ResyncMode,
}

impl Candidate {
    pub fn new(scheme: impl OwnershipScheme + 'static, resync: ResyncMode) -> Self {
        Self { scheme: Arc::new(scheme), resync }
    }
}

/// Returns every scheme for an external API with other clients in its correct variant.
pub fn correct_candidates() -> Vec<Candidate> {
    vec![
        Candidate::new(Prefix, ResyncMode::Periodic),
        Candidate::new(Labels, ResyncMode::Periodic),
        Candidate::new(Checkpoint::before_create(RecordForm::ConfigMap), ResyncMode::Periodic),
        Candidate::new(Checkpoint::before_create(RecordForm::ShapeRef), ResyncMode::Periodic),
        Candidate::new(Finalizer, ResyncMode::Periodic),
    ]
}

/// A world with one candidate.
pub struct Fixture<'a> {
    pub world: &'a mut World,
    pub candidate: Candidate,
    /// UIDs of the resources that the controller has created.
    created: Rc<RefCell<BTreeSet<String>>>,
    /// True if every resource in the external API belongs to the controller.
    is_exclusive: bool,
}

/// Names of resources that other clients have in a shared external API.
pub const FOREIGN: [&str; 3] = ["apple", "default.apple", "shapes"];

impl<'a> Fixture<'a> {
    /// A world in which other clients use the external API too: an oracle checks that their resources are not written.
    pub fn new(world: &'a mut World, candidate: &Candidate) -> Self {
        let fixture = Self::start(world, candidate, &FOREIGN);
        let known = fixture.created.clone();
        fixture.world.add_oracle(CLOUD, move |write, _| {
            let is_foreign = is_guest_write(write) && !known.borrow().contains(&write.uid);
            if is_foreign { Err(format!("foreign resource touched: {}", write.key.name)) } else { Ok(()) }
        });
        fixture
    }

    /// A world in which the controller has the external API for itself, with resources from earlier.
    pub fn exclusive(world: &'a mut World, candidate: &Candidate, earlier: &[&str]) -> Self {
        let fixture = Self::start(world, candidate, earlier);
        Self { is_exclusive: true, ..fixture }
    }

    fn start(world: &'a mut World, candidate: &Candidate, resources: &[&str]) -> Self {
        world.add_api(CLUSTER);
        world.add_external_api(CLOUD);
        crds().iter().for_each(|crd| world.install_crd(CLUSTER, crd));
        let created = Rc::new(RefCell::new(BTreeSet::new()));
        let known = created.clone();
        world.add_oracle(CLOUD, move |write, _| {
            if is_guest_write(write) && write.before.is_none() {
                known.borrow_mut().insert(write.uid.clone());
            }
            Ok(())
        });
        let mut fixture = Self { world, candidate: candidate.clone(), created, is_exclusive: false };
        resources.iter().for_each(|name| fixture.add_foreign_resource(name));
        let Candidate { scheme, resync } = candidate.clone();
        fixture.world.add_guest(GUEST, move |process| {
            let (cluster, cloud) = (process.client(CLUSTER), process.client(CLOUD));
            ShapesController { cluster, cloud, scheme: scheme.clone(), resync }.run()
        });
        fixture
    }

    /// Adds a resource of another client.
    pub fn add_foreign_resource(&mut self, name: &str) {
        let metadata = json!({"name": name, "namespace": NAMESPACE, "labels": {"owner": "someone-else"}});
        let resource =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": "none"}});
        self.world.create(CLOUD, RESOURCE, &resource);
    }

    pub fn create_shape(&mut self, name: &str, colour: &str) {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        let spec = json!({"kind": "square", "colour": colour});
        let shape = json!({"apiVersion": SHAPE.api_version(), "kind": SHAPE.kind, "metadata": metadata, "spec": spec});
        self.world.create(CLUSTER, SHAPE, &shape);
    }

    pub fn recolour(&mut self, name: &str, colour: &str) {
        self.world.edit(CLUSTER, SHAPE, NAMESPACE, name, |shape| shape["spec"]["colour"] = json!(colour));
    }

    pub fn delete_shape(&mut self, name: &str) {
        self.world.delete(CLUSTER, SHAPE, NAMESPACE, name);
    }

    pub fn shape(&mut self, name: &str) -> Option<Value> {
        self.world.get(CLUSTER, SHAPE, NAMESPACE, name)
    }

    /// Returns the name of the resource of a shape.
    pub fn resource_name(&mut self, name: &str) -> String {
        let shape = self.shape(name).unwrap_or_else(|| panic!("shape {name} does not exist"));
        self.candidate.scheme.resource_name(&shape)
    }

    pub fn resource(&mut self, name: &str) -> Option<Value> {
        self.world.get(CLOUD, RESOURCE, NAMESPACE, name)
    }

    /// Returns the resources in the external API, by name.
    pub fn resources(&mut self) -> BTreeMap<String, Value> {
        let resources = self.world.list(CLOUD, RESOURCE).into_iter();
        let resources = resources.filter(|resource| text(resource, "/metadata/namespace") == NAMESPACE);
        resources.map(|resource| (name(&resource).to_owned(), resource)).collect()
    }

    /// Returns the existing resources that the controller has created, by name.
    pub fn created(&mut self) -> BTreeMap<String, Value> {
        let created = self.created.borrow().clone();
        self.resources().into_iter().filter(|(_, resource)| created.contains(uid(resource))).collect()
    }

    /// Advances time until the resources match the shapes; returns the problem if that takes too long.
    pub fn await_converged(&mut self, limit: Duration) -> Result<(), String> {
        let end = self.world.now() + limit;
        let mut checked = None;
        while self.world.now() < end {
            let written = self.world.writes(CLUSTER).len() + self.world.writes(CLOUD).len();
            if checked.replace(written) != Some(written) && self.check_converged().is_ok() {
                break;
            }
            self.world.step(end);
        }
        self.check_converged()
    }

    /// Checks that the resources match the shapes.
    pub fn check_converged(&mut self) -> Result<(), String> {
        let shapes = self.world.list(CLUSTER, SHAPE);
        let mut created = if self.is_exclusive { self.resources() } else { self.created() };
        for shape in &shapes {
            let shape_name = name(shape);
            if is_deleting(shape) {
                return Err(format!("{shape_name} is still being deleted"));
            }
            let resource_name = self.candidate.scheme.resource_name(shape);
            let resource = created.remove(&resource_name);
            if resource.is_none() && self.resource(&resource_name).is_some() && shape["status"]["phase"] == "Blocked" {
                // Another client owns the name, and the status says so.
                continue;
            }
            let resource = resource.ok_or_else(|| format!("missing: {shape_name} has no resource"))?;
            if resource["data"] != shape["spec"] {
                return Err(format!("drift: the resource of {shape_name} differs"));
            }
            let is_observed = shape["status"]["observedGeneration"] == shape["metadata"]["generation"];
            if shape["status"]["phase"] != "Made" || !is_observed {
                return Err(format!("{shape_name} is not reported as made"));
            }
        }
        if let Some(leak) = created.keys().next() {
            return Err(format!("leak: no shape declares {leak}"));
        }
        let records = self.world.list(CLUSTER, self.candidate.scheme.record_form().kind());
        let records = records.iter().filter(|object| object["metadata"]["labels"][RECORD_LABEL].is_string()).count();
        if records > shapes.len() {
            return Err("leak: a record without a resource".to_owned());
        }
        Ok(())
    }
}
