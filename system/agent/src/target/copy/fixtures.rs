//! Revisions and headers for the tests of the copy.

use sindri_model::wire::DeploymentObject;
use sindri_model::{Checksum, Epoch, Sequence};

use super::CopyHeader;

/// Returns a revision of stack `number` with this bundle.
pub fn revision(number: u8, sequence: i64, yaml: &str) -> DeploymentObject {
    let time = "2024-01-01T00:00:00Z".parse().unwrap();
    DeploymentObject {
        id: format!("00000000-0000-4000-8000-{sequence:012}").parse().unwrap(),
        created_at: time,
        updated_at: time,
        deleted_at: None,
        sequence_id: Sequence(sequence),
        stack_id: format!("{number:08}-0000-4000-8000-000000000000").parse().unwrap(),
        yaml_content: yaml.to_owned(),
        yaml_checksum: Checksum::compute(yaml),
        submitted_at: time,
        is_deletion_marker: false,
        stack_name: Some(format!("stack {number}")),
    }
}

/// Returns the header of a copy of agent east in this epoch.
pub fn header(epoch: i64) -> CopyHeader {
    let agent = "10000000-0000-4000-8000-000000000000".parse().unwrap();
    CopyHeader { agent, name: "east".to_owned(), cluster_name: "demo".to_owned(), epoch: Epoch(epoch) }
}
