//! The kubeconfig for a running server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Returns the kubeconfig for a URL. Authority and token are set if the server uses TLS.
pub(super) fn render_kubeconfig(url: &str, authority: Option<&str>, token: Option<&str>) -> String {
    let authority =
        authority.map(|pem| format!("\n    certificate-authority-data: {}", STANDARD.encode(pem))).unwrap_or_default();
    let user = token.map_or_else(|| "{}".to_owned(), |token| format!("\n    token: {token}"));
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: sindri\n\
         clusters:\n- name: sindri\n  cluster:\n    server: {url}{authority}\n\
         users:\n- name: sindri\n  user: {user}\n\
         contexts:\n- name: sindri\n  context:\n    cluster: sindri\n    user: sindri\n"
    )
}
