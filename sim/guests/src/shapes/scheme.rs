//! How a controller knows which things are its own.

use std::fmt::Debug;

use serde_json::{Value, json};

use super::plan::View;
use crate::client::{name, text, uid};

/// What the controller's things are called where the name says whose they are.
const PREFIX: &str = "shape.";
/// The label that says whose a thing is.
const OWNER_LABEL: &str = "guests.example.com/owner";
/// What it says.
const OWNER: &str = "shapes";
/// What keeps a declaration until its thing is gone.
pub const FINALIZER: &str = "guests.example.com/shapes";
/// So much of a declaration's identity is in the name of its thing, where names alone must not be mistaken.
const IDENTITY_CHARACTERS: usize = 8;

/// When a thing is recorded in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// Never.
    Never,
    /// Before it is made: what is left by a crash in between is a name that we know.
    First,
    /// After it was made: what is left by a crash in between is known to nobody. Wrong, on purpose.
    Last,
}

/// A way to tell one's own things from those of others.
pub trait Scheme: Debug + Send + Sync {
    /// How the thing of a declaration is called.
    fn thing_name(&self, declaration: &Value) -> String;

    /// Whether a thing is ours.
    fn owns(&self, thing: &Value, view: &View) -> bool;

    /// The labels of a thing.
    fn labels(&self) -> Value {
        json!({})
    }

    /// When a thing is recorded.
    fn records(&self) -> Records {
        Records::Never
    }

    /// Whether a declaration is kept until its thing is gone.
    fn holds(&self) -> bool {
        false
    }
}

fn full_name(declaration: &Value) -> String {
    format!("{}.{}", text(declaration, "/metadata/namespace"), name(declaration))
}

fn unmistakable_name(declaration: &Value) -> String {
    let identity: String = uid(declaration).chars().take(IDENTITY_CHARACTERS).collect();
    format!("{}.{identity}", full_name(declaration))
}

/// Ours is what is called so.
#[derive(Clone, Copy, Debug)]
pub struct Prefix;

impl Scheme for Prefix {
    fn thing_name(&self, declaration: &Value) -> String {
        format!("{PREFIX}{}", full_name(declaration))
    }

    fn owns(&self, thing: &Value, _: &View) -> bool {
        name(thing).starts_with(PREFIX)
    }
}

/// Ours is what has our label.
#[derive(Clone, Copy, Debug)]
pub struct Labels;

impl Scheme for Labels {
    fn thing_name(&self, declaration: &Value) -> String {
        full_name(declaration)
    }

    fn owns(&self, thing: &Value, _: &View) -> bool {
        thing.pointer("/metadata/labels").is_some_and(|labels| labels[OWNER_LABEL] == OWNER)
    }

    fn labels(&self) -> Value {
        json!({OWNER_LABEL: OWNER})
    }
}

/// Ours is what we recorded in the cluster.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint {
    /// When it is recorded.
    pub records: Records,
}

impl Scheme for Checkpoint {
    fn thing_name(&self, declaration: &Value) -> String {
        unmistakable_name(declaration)
    }

    fn owns(&self, thing: &Value, view: &View) -> bool {
        view.records.contains(name(thing))
    }

    fn records(&self) -> Records {
        self.records
    }
}

/// Ours is what a declaration stands for that we hold.
#[derive(Clone, Copy, Debug)]
pub struct Finalizer;

impl Scheme for Finalizer {
    fn thing_name(&self, declaration: &Value) -> String {
        unmistakable_name(declaration)
    }

    fn owns(&self, thing: &Value, view: &View) -> bool {
        let mut held = view.declarations.iter().filter(|declaration| has_finalizer(declaration));
        held.any(|declaration| self.thing_name(declaration) == name(thing))
    }

    fn holds(&self) -> bool {
        true
    }
}

/// Ours is whatever has the name of a declaration. Wrong, on purpose: others choose names too.
#[derive(Clone, Copy, Debug)]
pub struct ByName;

impl Scheme for ByName {
    fn thing_name(&self, declaration: &Value) -> String {
        full_name(declaration)
    }

    fn owns(&self, _: &Value, _: &View) -> bool {
        true
    }
}

/// Whether we hold a declaration.
pub fn has_finalizer(declaration: &Value) -> bool {
    let held = declaration.pointer("/metadata/finalizers").and_then(Value::as_array);
    held.is_some_and(|held| held.iter().any(|finalizer| finalizer == FINALIZER))
}
