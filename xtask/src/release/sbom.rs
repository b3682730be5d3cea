//! The software bill of materials: every crate in the shipped binaries, in the form of CycloneDX.

use serde_json::{Value, json};

use super::binaries::version;
use super::shipped_crates::ShippedCrate;

/// Makes the document.
pub fn make_sbom(crates: &[ShippedCrate]) -> Value {
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "sindri", "version": version()}},
        "components": crates.iter().map(describe).collect::<Vec<_>>(),
        "dependencies": crates
            .iter()
            .map(|shipped| json!({"ref": shipped.text("id"), "dependsOn": shipped.dependencies}))
            .collect::<Vec<_>>(),
    })
}

fn describe(shipped: &ShippedCrate) -> Value {
    json!({
        "type": "library",
        "bom-ref": shipped.text("id"),
        "name": shipped.text("name"),
        "version": shipped.text("version"),
        "purl": format!("pkg:cargo/{}@{}", shipped.text("name"), shipped.text("version")),
        "licenses": [{"expression": shipped.text("license").replace('/', " OR ")}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_has_its_licence_and_its_dependencies() {
        let package = json!({"id": "a 1.0.0", "name": "a", "version": "1.0.0", "license": "MIT/Apache-2.0"});
        let sbom = make_sbom(&[ShippedCrate { package, dependencies: vec!["b 2.0.0".to_owned()] }]);
        assert_eq!(sbom["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(sbom["components"][0]["purl"], "pkg:cargo/a@1.0.0");
        assert_eq!(sbom["dependencies"][0], json!({"ref": "a 1.0.0", "dependsOn": ["b 2.0.0"]}));
    }
}
