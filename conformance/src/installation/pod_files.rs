//! The files of a pod: a directory for its root, one for each volume, and the list of its mounts.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::api::{Api, entries, path, text};

/// Directories of this machine in the root of every pod: an image of its own would have them.
const SYSTEM: [&str; 4] = ["/usr", "/dev", "/proc", "/etc/ssl"];
/// Directories that are links to directories in `/usr` on most machines.
const LINKED: [&str; 5] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64"];
/// Directory of the programs in the root of a pod.
pub const PROGRAMS: &str = "/opt/sindri";
/// Permissions of files in volumes that name none.
const MODE: u64 = 0o644;

/// Directories from which pods are made.
pub struct Sources<'a> {
    /// Directory for the files of all pods.
    pub directory: &'a Path,
    /// Directory of the programs.
    pub programs: &'a Path,
}

/// Files of one pod.
pub struct PodFiles {
    /// Directory of its root.
    pub root: PathBuf,
    /// File with the mounts: in each line `ro` or `rw`, the directory, and its place in the root, with tabs between them.
    pub mounts: PathBuf,
}

impl PodFiles {
    /// Creates the files. Returns `None` while an object of a volume is missing.
    pub fn create(api: Api<'_>, sources: &Sources<'_>, pod: &Value) -> Result<Option<Self>, String> {
        let own = sources.directory.join(text(&pod["metadata"]["uid"]));
        // Left by an earlier attempt, while an object was missing.
        let _removed = fs::remove_dir_all(&own);
        let files = Self { root: own.join("root"), mounts: own.join("mounts") };
        let mut mounts = files.mount_system(sources.programs)?;
        for mount in entries(&pod["spec"]["containers"][0]["volumeMounts"]) {
            let mut volumes = entries(&pod["spec"]["volumes"]);
            let volume = volumes.find(|volume| volume["name"] == mount["name"]).ok_or("a mount has no volume")?;
            let volume = Volume { api, pod, directory: own.join("volumes").join(text(&volume["name"])), volume };
            let Some(directory) = volume.create(sources.directory)? else { return Ok(None) };
            let mode = if mount["readOnly"] == true { "ro" } else { "rw" };
            mounts.push(files.mount(mode, &directory, text(&mount["mountPath"]))?);
        }
        write(&files.mounts, mounts.concat().as_bytes(), MODE)?;
        Ok(Some(files))
    }

    /// Creates the root. Returns the mounts of what an image would have.
    fn mount_system(&self, programs: &Path) -> Result<Vec<String>, String> {
        make_directory(&self.root)?;
        let mut mounts = Vec::new();
        for place in LINKED {
            match fs::read_link(place) {
                Ok(link) => {
                    let own = self.root.join(place.trim_start_matches('/'));
                    symlink(link, &own).map_err(|error| format!("{}: {error}", own.display()))?;
                }
                Err(_) if Path::new(place).is_dir() => mounts.push(self.mount("rw", Path::new(place), place)?),
                Err(_) => {}
            }
        }
        for place in SYSTEM {
            mounts.push(self.mount("rw", Path::new(place), place)?);
        }
        mounts.push(self.mount("ro", programs, PROGRAMS)?);
        Ok(mounts)
    }

    /// Creates the directory for a mount. Returns the line about it.
    fn mount(&self, mode: &str, source: &Path, place: &str) -> Result<String, String> {
        make_directory(&self.root.join(place.trim_start_matches('/')))?;
        Ok(format!("{mode}\t{}\t{place}\n", source.display()))
    }
}

/// A volume of a pod.
struct Volume<'a> {
    api: Api<'a>,
    pod: &'a Value,
    volume: &'a Value,
    /// Directory for its files.
    directory: PathBuf,
}

impl Volume<'_> {
    /// Creates the files, and returns their directory; `None` while an object is missing.
    fn create(&self, claims: &Path) -> Result<Option<PathBuf>, String> {
        let Self { volume, directory, .. } = self;
        if let Some(claim) = volume["persistentVolumeClaim"]["claimName"].as_str() {
            // Outlives the pod.
            let directory = claims.join("claims").join(claim);
            return make_directory(&directory).map(|()| Some(directory));
        }
        make_directory(directory)?;
        let is_complete = if volume["secret"].is_object() {
            self.write_secret(&volume["secret"])?
        } else if volume["projected"].is_object() {
            let mode = mode_of(&volume["projected"]);
            let mut sources = entries(&volume["projected"]["sources"]);
            sources.try_fold(true, |is_complete, source| Ok::<_, String>(self.project(source, mode)? && is_complete))?
        } else if volume["emptyDir"].is_object() {
            true
        } else {
            return Err(format!("the volume {} has an unknown type", volume["name"]));
        };
        Ok(is_complete.then(|| directory.clone()))
    }

    /// Writes each key of a Secret to a file. Returns false if the Secret does not exist.
    fn write_secret(&self, source: &Value) -> Result<bool, String> {
        let name = text(&source["secretName"]);
        let Some(secret) = self.api.get(&path(&format!("secrets/{name}")))? else { return Ok(false) };
        for (key, value) in secret["data"].as_object().into_iter().flatten() {
            let value = STANDARD.decode(text(value)).map_err(|error| format!("Secret {name}: {error}"))?;
            write(&self.directory.join(key), &value, mode_of(source))?;
        }
        Ok(true)
    }

    /// Writes the files of one source: the token of the ServiceAccount, the certificate authority of the API server, and fields of
    /// the pod. Returns false if its object does not exist.
    fn project(&self, source: &Value, mode: u64) -> Result<bool, String> {
        let token = &source["serviceAccountToken"];
        if token.is_object() {
            let account = text(&self.pod["spec"]["serviceAccountName"]);
            let request = json!({"spec": {"expirationSeconds": token["expirationSeconds"]}});
            let response = self.api.create(&path(&format!("serviceaccounts/{account}/token")), &request)?;
            write(&self.directory.join(text(&token["path"])), text(&response["status"]["token"]).as_bytes(), mode)?;
        }
        let map = &source["configMap"];
        if map.is_object() {
            let found = self.api.get(&path(&format!("configmaps/{}", text(&map["name"]))))?;
            let Some(found) = found else { return Ok(false) };
            for item in entries(&map["items"]) {
                let content = text(&found["data"][text(&item["key"])]);
                write(&self.directory.join(text(&item["path"])), content.as_bytes(), mode)?;
            }
        }
        for item in entries(&source["downwardAPI"]["items"]) {
            let pointer = format!("/{}", text(&item["fieldRef"]["fieldPath"]).replace('.', "/"));
            let content = self.pod.pointer(&pointer).map(text).unwrap_or_default();
            write(&self.directory.join(text(&item["path"])), content.as_bytes(), mode)?;
        }
        Ok(true)
    }
}

fn mode_of(source: &Value) -> u64 {
    source["defaultMode"].as_u64().unwrap_or(MODE)
}

fn make_directory(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))
}

fn write(file: &Path, content: &[u8], mode: u64) -> Result<(), String> {
    let mode = u32::try_from(mode).unwrap_or_default();
    let opened = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(file);
    opened.and_then(|mut opened| opened.write_all(content)).map_err(|error| format!("{}: {error}", file.display()))
}
