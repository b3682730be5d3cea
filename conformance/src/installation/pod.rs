//! The command that runs the container of a pod: in a root of its own with the mounts of the pod, and with its environment only.

use std::ffi::OsString;
use std::path::PathBuf;

use rustix::process::getuid;
use serde_json::Value;
use sindri_cluster::Access;

use super::api::{entries, text};
use super::pod_files::{PROGRAMS, PodFiles};
use crate::process::Launch;

/// Makes the mounts, which only this process and its children see, and a read-only root. The arguments are the root, the file with
/// the mounts, the variables and the command. The process stays the same one, so that signals reach the program.
const SCRIPT: &str = r#"
set -eu
root=$1 mounts=$2; shift 2
mount --bind "$root" "$root"
while IFS=$(printf '\t') read -r mode source target; do
  mount --rbind "$source" "$root$target"
  if [ "$mode" = ro ]; then mount -o remount,bind,ro,nosuid,nodev "$root$target"; fi
done < "$mounts"
mount -o remount,bind,ro,nosuid,nodev "$root"
exec chroot "$root" /usr/bin/env -i "$@"
"#;
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// End of the names of variables with the address of a listener, and with a URL.
const LISTEN: &str = "__LISTEN";
const URL: &str = "_URL";

/// Addresses in the environment of a container. In a pod the listener would have an address of its own.
pub struct Addresses<'a> {
    /// Address for its listener.
    pub listen: &'a str,
    /// Finds the address behind the URL of a Service; `None` if no pod of it is ready.
    pub resolve: &'a dyn Fn(&str) -> Result<Option<String>, String>,
}

/// Makes the command of the only container; `None` while a Service in its environment has no pod that is ready.
pub fn build_launch(
    pod: &Value,
    files: &PodFiles,
    access: &Access,
    addresses: &Addresses<'_>,
    log: PathBuf,
) -> Result<Option<Launch>, String> {
    let name = text(&pod["metadata"]["name"]);
    let container = &pod["spec"]["containers"][0];
    let flags: &[&str] = if getuid().is_root() { &["--mount"] } else { &["--user", "--map-root-user", "--mount"] };
    let mut arguments: Vec<OsString> = flags.iter().chain(&["sh", "-c", SCRIPT, "pod"]).map(OsString::from).collect();
    arguments.extend([files.root.clone().into(), files.mounts.clone().into()]);
    let (host, port) = split_server(&access.server)?;
    let own = [
        PATH.to_owned(),
        format!("HOSTNAME={name}"),
        format!("KUBERNETES_SERVICE_HOST={host}"),
        format!("KUBERNETES_SERVICE_PORT={port}"),
    ];
    arguments.extend(own.map(OsString::from));
    for variable in entries(&container["env"]) {
        let Some(value) = convert_value(variable, addresses)? else { return Ok(None) };
        arguments.push(format!("{}={value}", text(&variable["name"])).into());
    }
    arguments.extend(build_command(container).into_iter().map(OsString::from));
    let (program, environment) = (PathBuf::from("unshare"), Vec::new());
    Ok(Some(Launch { name: name.to_owned(), program, arguments, environment, log }))
}

/// Returns true if the container has a listener.
pub fn has_listener(pod: &Value) -> bool {
    entries(&pod["spec"]["containers"][0]["env"]).any(|variable| text(&variable["name"]).ends_with(LISTEN))
}

fn convert_value(variable: &Value, addresses: &Addresses<'_>) -> Result<Option<String>, String> {
    let name = text(&variable["name"]);
    let value = variable["value"].as_str();
    match value {
        // Only of keys in Secrets, which would be in the arguments of a process.
        None if variable["valueFrom"].is_object() => Err(format!("{name}: values from elsewhere are not supported")),
        None => Ok(Some(String::new())),
        Some(_) if name.ends_with(LISTEN) => Ok(Some(addresses.listen.to_owned())),
        Some(value) if name.ends_with(URL) && value.starts_with("http://") => (addresses.resolve)(value),
        Some(value) => Ok(Some(value.to_owned())),
    }
}

/// Returns the command and its arguments. Without a command it is the program of the image, which has the name of the image.
fn build_command(container: &Value) -> Vec<String> {
    let list = |field: &Value| entries(field).map(|entry| text(entry).to_owned()).collect::<Vec<_>>();
    let mut command = list(&container["command"]);
    if command.is_empty() {
        let image = text(&container["image"]).rsplit('/').next().unwrap_or_default();
        command.push(format!("{PROGRAMS}/{}", image.split(':').next().unwrap_or_default()));
    }
    command.extend(list(&container["args"]));
    command
}

/// Splits `https://HOST:PORT`.
fn split_server(server: &str) -> Result<(&str, &str), String> {
    let split = server.strip_prefix("https://").and_then(|address| address.rsplit_once(':'));
    split.ok_or_else(|| format!("pods need an API server with TLS and a port, not {server}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_program_of_a_container_is_its_command_or_that_of_its_image() {
        let image = json!({"image": "images.example/sindri-agent:0.1.0", "args": ["--version"]});
        assert_eq!(build_command(&image), ["/opt/sindri/sindri-agent", "--version"]);
        let command = json!({"image": "alpine", "command": ["/bin/sh", "-c"], "args": ["echo a"]});
        assert_eq!(build_command(&command), ["/bin/sh", "-c", "echo a"]);
    }

    #[test]
    fn listeners_and_services_get_addresses_of_this_machine() {
        let resolve = |url: &str| Ok((url == "http://known:3000").then(|| "http://127.0.0.1:7".to_owned()));
        let addresses = Addresses { listen: "127.0.0.1:0", resolve: &resolve };
        let convert = |name: &str, value: &str| convert_value(&json!({"name": name, "value": value}), &addresses);
        assert_eq!(convert("A__LISTEN", "0.0.0.0:9090"), Ok(Some("127.0.0.1:0".to_owned())));
        assert_eq!(convert("A__BROKER_URL", "http://known:3000"), Ok(Some("http://127.0.0.1:7".to_owned())));
        assert_eq!(convert("A__BROKER_URL", "http://absent:3000"), Ok(None));
        assert_eq!(convert("A__DATABASE__URL", "sqlite:/a.db"), Ok(Some("sqlite:/a.db".to_owned())));
        let secret = json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}});
        assert!(convert_value(&secret, &addresses).is_err());
    }
}
