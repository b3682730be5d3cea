//! The three components, each built from its own set of files, so that a change of one does not rebuild the others.

use std::io;
use std::path::{Path, PathBuf};

use crate::home::project;
use crate::version::Version;

/// Go package with the version that the programs of Kubernetes report.
const VERSION_PACKAGE: &str = "k8s.io/component-base/version";

/// A part of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Component {
    /// Our program that supervises the others. It needs only the standard library.
    Plane,
    /// etcd and Kubernetes.
    Kubernetes(Version),
    /// kwok, whose modules conflict with those of older versions of Kubernetes.
    Kwok,
}

impl Component {
    /// Prefix of its directory in the cache.
    pub(super) fn name(self) -> String {
        match self {
            Self::Plane => "plane".to_owned(),
            Self::Kubernetes(version) => format!("kubernetes-{}", version.release()),
            Self::Kwok => "kwok".to_owned(),
        }
    }

    /// Directory of its Go module.
    pub(super) fn module(self) -> PathBuf {
        let control_plane = project().join("conformance/controlplane");
        match self {
            Self::Plane | Self::Kubernetes(_) => control_plane,
            Self::Kwok => control_plane.join("kwok"),
        }
    }

    /// File that pins its modules.
    pub(super) fn module_file(self) -> &'static str {
        match self {
            Self::Plane => Version::default().module_file(),
            Self::Kubernetes(version) => version.module_file(),
            Self::Kwok => "go.mod",
        }
    }

    /// Packages to compile.
    pub(super) fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Plane => &["./cmd/plane"],
            Self::Kubernetes(_) => &[
                "./cmd/etcd",
                "k8s.io/kubernetes/cmd/kube-apiserver",
                "k8s.io/kubernetes/cmd/kube-controller-manager",
                "k8s.io/kubernetes/cmd/kube-scheduler",
            ],
            Self::Kwok => &["sigs.k8s.io/kwok/cmd/kwok"],
        }
    }

    /// Names of the binaries.
    pub(super) fn programs(self) -> impl Iterator<Item = &'static str> {
        self.packages().iter().map(|package| package.rsplit('/').next().unwrap_or(package))
    }

    /// Flags of the linker: no debug information, and the version of Kubernetes.
    pub(super) fn linker_flags(self) -> String {
        let Self::Kubernetes(version) = self else { return "-s -w".to_owned() };
        let release = version.release();
        let mut numbers = release.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
        format!(
            "-s -w -X {VERSION_PACKAGE}.gitVersion={release} -X {VERSION_PACKAGE}.gitMajor={major} \
             -X {VERSION_PACKAGE}.gitMinor={minor} -X {VERSION_PACKAGE}.gitTreeState=clean"
        )
    }

    /// Source files in a fixed order.
    pub(super) fn sources(self) -> io::Result<Vec<PathBuf>> {
        let module = self.module();
        let (pins, sums) = (self.module_file(), self.module_file().replace(".mod", ".sum"));
        match self {
            Self::Plane => files_in(&module.join("cmd/plane")),
            Self::Kubernetes(_) => {
                let mut files = files_in(&module.join("cmd/etcd"))?;
                files.extend([module.join(pins), module.join(sums)]);
                Ok(files)
            }
            Self::Kwok => Ok(vec![module.join(pins), module.join(sums)]),
        }
    }
}

fn files_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = std::fs::read_dir(directory)?;
    let mut files = listed.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_flags_contain_the_version_of_kubernetes() {
        let flags = Component::Kubernetes(Version::V1_35).linker_flags();
        assert!(flags.contains(".gitVersion=v1.35.4 "), "{flags}");
        assert!(flags.contains(".gitMajor=1 ") && flags.contains(".gitMinor=35 "), "{flags}");
    }

    #[test]
    fn all_source_files_exist() {
        for component in [Component::Plane, Component::Kubernetes(Version::V1_36), Component::Kwok] {
            for file in component.sources().unwrap() {
                assert!(file.is_file(), "{}", file.display());
            }
        }
    }
}
