//! Writes a kubeconfig, as JSON, which is valid YAML.

use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::json;

use crate::access::Secret;

/// Only for the owner: the file contains a token.
const MODE: u32 = 0o600;

/// Writes a kubeconfig for an administrator with a token.
pub(crate) fn write(path: &Path, server: &str, authority_base64: &str, token: &Secret) -> io::Result<()> {
    let cluster = json!({"server": server, "certificate-authority-data": authority_base64});
    let text = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sindri",
        "clusters": [{"name": "sindri", "cluster": cluster}],
        "users": [{"name": "sindri", "user": {"token": token.expose()}}],
        "contexts": [{"name": "sindri", "context": {"cluster": "sindri", "user": "sindri"}}],
    });
    let mut file = std::fs::File::options().create_new(true).write(true).mode(MODE).open(path)?;
    writeln!(file, "{text:#}")
}
