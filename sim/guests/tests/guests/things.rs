//! A world with the shapes controller in it: the cluster with the declarations, the other API with the things, what
//! people do there, and what must hold.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use sindri_guests::client::{is_deleting, name, uid};
use sindri_guests::harness::{World, is_guests};
use sindri_guests::shapes::{
    Checkpoint, Finalizer, Labels, Prefix, RECORD_LABEL, Records, SHAPE, Scheme, Shapes, Sight, THING, definition,
};

/// Where the declarations are.
pub const CLUSTER: &str = "cluster";
/// Where the things are.
pub const CLOUD: &str = "cloud";
/// The machine of the controller.
pub const GUEST: &str = "shapes";
/// The namespace of everything.
pub const PLACE: &str = "default";

/// A controller, right or wrong.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub scheme: Arc<dyn Scheme>,
    pub sight: Sight,
}

impl Candidate {
    pub fn new(scheme: impl Scheme + 'static, sight: Sight) -> Self {
        Self { scheme: Arc::new(scheme), sight }
    }
}

/// Every scheme as it should be.
pub fn right() -> Vec<Candidate> {
    vec![
        Candidate::new(Prefix, Sight::Always),
        Candidate::new(Labels, Sight::Always),
        Candidate::new(Checkpoint { records: Records::First }, Sight::Always),
        Candidate::new(Finalizer, Sight::Always),
    ]
}

/// A world with one candidate.
pub struct Place<'a> {
    pub world: &'a mut World,
    pub candidate: Candidate,
    /// The identities of what the controller made in the other API.
    made: Rc<RefCell<BTreeSet<String>>>,
}

impl<'a> Place<'a> {
    pub fn new(world: &'a mut World, candidate: &Candidate) -> Self {
        world.add_api(CLUSTER);
        world.add_api(CLOUD);
        world.define(CLUSTER, &definition());
        let made = Rc::new(RefCell::new(BTreeSet::new()));
        let known = made.clone();
        world.judge(CLOUD, move |write, _| {
            if !is_guests(write) {
                return Ok(());
            }
            if write.before.is_none() {
                known.borrow_mut().insert(write.uid.clone());
            }
            let is_foreign = !known.borrow().contains(&write.uid);
            if is_foreign { Err(format!("foreign thing touched: {}", write.key.name)) } else { Ok(()) }
        });
        let mut place = Self { world, candidate: candidate.clone(), made };
        ["apple", "default.apple", "shapes"].iter().for_each(|name| place.put_foreign(name));
        let Candidate { scheme, sight } = candidate.clone();
        place.world.add_guest(GUEST, move |process| {
            let (cluster, cloud) = (process.client(CLUSTER), process.client(CLOUD));
            Shapes { cluster, cloud, scheme: scheme.clone(), sight }.run()
        });
        place
    }

    /// Somebody else's thing.
    pub fn put_foreign(&mut self, name: &str) {
        let metadata = json!({"name": name, "namespace": PLACE, "labels": {"owner": "someone-else"}});
        let thing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": "none"}});
        self.world.create(CLOUD, THING, &thing);
    }

    pub fn declare(&mut self, name: &str, colour: &str) {
        let metadata = json!({"name": name, "namespace": PLACE});
        let spec = json!({"kind": "square", "colour": colour});
        let shape = json!({"apiVersion": SHAPE.api_version(), "kind": SHAPE.kind, "metadata": metadata, "spec": spec});
        self.world.create(CLUSTER, SHAPE, &shape);
    }

    pub fn recolour(&mut self, name: &str, colour: &str) {
        self.world.change(CLUSTER, SHAPE, PLACE, name, |shape| shape["spec"]["colour"] = json!(colour));
    }

    pub fn undeclare(&mut self, name: &str) {
        self.world.delete(CLUSTER, SHAPE, PLACE, name);
    }

    pub fn declaration(&mut self, name: &str) -> Option<Value> {
        self.world.get(CLUSTER, SHAPE, PLACE, name)
    }

    /// How the thing of a declaration is called.
    pub fn thing_name(&mut self, name: &str) -> String {
        let declaration = self.declaration(name).unwrap_or_else(|| panic!("{name} is not declared"));
        self.candidate.scheme.thing_name(&declaration)
    }

    pub fn thing(&mut self, name: &str) -> Option<Value> {
        self.world.get(CLOUD, THING, PLACE, name)
    }

    /// The names of what the controller made and that is still there, in the order of names.
    pub fn made(&mut self) -> BTreeMap<String, Value> {
        let made = self.made.borrow().clone();
        let things = self.world.list(CLOUD, THING).into_iter().filter(|thing| made.contains(uid(thing)));
        things.map(|thing| (name(&thing).to_owned(), thing)).collect()
    }

    /// Lets time pass until there is exactly what is declared; if that takes too long, what is wrong.
    pub fn settle(&mut self, longest: Duration) -> Result<(), String> {
        let end = self.world.now() + longest;
        let mut seen = None;
        while self.world.now() < end {
            let written = self.world.writes(CLUSTER).len() + self.world.writes(CLOUD).len();
            if seen.replace(written) != Some(written) && self.settled().is_ok() {
                break;
            }
            self.world.step(end);
        }
        self.settled()
    }

    /// Whether there is exactly what is declared; if not, why not.
    pub fn settled(&mut self) -> Result<(), String> {
        let declarations = self.world.list(CLUSTER, SHAPE);
        let mut made = self.made();
        for declaration in &declarations {
            let called = name(declaration);
            if is_deleting(declaration) {
                return Err(format!("{called} is still being deleted"));
            }
            let wanted = self.candidate.scheme.thing_name(declaration);
            let thing = made.remove(&wanted);
            if thing.is_none() && self.thing(&wanted).is_some() && declaration["status"]["phase"] == "Blocked" {
                // Somebody else has that name, and that is what is said.
                continue;
            }
            let thing = thing.ok_or_else(|| format!("missing: {called} has no thing"))?;
            if thing["data"] != declaration["spec"] {
                return Err(format!("drift: the thing of {called} is not as declared"));
            }
            let is_told = declaration["status"]["observedGeneration"] == declaration["metadata"]["generation"];
            if declaration["status"]["phase"] != "Made" || !is_told {
                return Err(format!("{called} is not reported to be made"));
            }
        }
        if let Some(leak) = made.keys().next() {
            return Err(format!("leak: nobody declares {leak}"));
        }
        let records = self.world.list(CLUSTER, THING);
        let records = records.iter().filter(|object| object["metadata"]["labels"][RECORD_LABEL].is_string()).count();
        if records > declarations.len() {
            return Err("leak: a record of nothing".to_owned());
        }
        Ok(())
    }
}
