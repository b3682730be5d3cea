//! The resources that are served at this moment: the built-in ones, and those of CRDs that took effect.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use super::kinds::built_in;
use super::resource::{Resource, Target, version_priority};

/// Served resources, by group and plural. Servers without CRDs share one map.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    resources: Arc<BTreeMap<(String, String), Arc<Resource>>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        static FRESH: OnceLock<Registry> = OnceLock::new();
        let place = |resource: &Resource| (resource.group.clone(), resource.plural.clone());
        let fresh = || built_in().iter().map(|resource| (place(resource), resource.clone())).collect();
        FRESH.get_or_init(|| Self { resources: Arc::new(fresh()) }).clone()
    }

    pub(crate) fn serve(&mut self, resource: Resource) {
        let place = (resource.group.clone(), resource.plural.clone());
        Arc::make_mut(&mut self.resources).insert(place, Arc::new(resource));
    }

    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        Arc::make_mut(&mut self.resources).remove(&(group.to_owned(), plural.to_owned()));
    }

    pub(crate) fn resource(&self, group: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.resources.get(&(group.to_owned(), plural.to_owned()))
    }

    pub(crate) fn target(&self, group: &str, version: &str, plural: &str) -> Option<Target> {
        let resource = self.resource(group, plural)?;
        let version = resource.versions.iter().find(|served| served.name == version)?;
        Some(Target { resource: resource.clone(), version: version.clone() })
    }

    /// Returns a resource in its preferred version.
    pub(crate) fn preferred(&self, group: &str, plural: &str) -> Option<Target> {
        let resource = self.resource(group, plural)?;
        Some(Target { resource: resource.clone(), version: resource.versions.first()?.clone() })
    }

    pub(crate) fn by_kind(&self, group: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.resources.values().find(|resource| resource.group == group && resource.kind == kind)
    }

    pub(crate) fn has_group(&self, group: &str) -> bool {
        self.resources.keys().any(|(served, _)| served == group)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }

    /// Returns the groups with their versions, the preferred first.
    pub(crate) fn groups(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for resource in self.all() {
            let versions = groups.entry(&resource.group).or_default();
            versions.extend(resource.versions.iter().map(|version| version.name.as_str()));
        }
        let mut result = BTreeMap::new();
        for (group, versions) in groups {
            let mut versions: Vec<&str> = versions.into_iter().collect();
            versions.sort_by_key(|version| std::cmp::Reverse(version_priority(version)));
            result.insert(group, versions);
        }
        result
    }

    /// Returns the resources of one version of a group.
    pub(crate) fn in_version<'a>(&'a self, group: &'a str, version: &'a str) -> impl Iterator<Item = Target> + 'a {
        self.all().filter(move |resource| resource.group == group).filter_map(move |resource| {
            let version = resource.versions.iter().find(|served| served.name == version)?;
            Some(Target { resource: resource.clone(), version: version.clone() })
        })
    }
}
