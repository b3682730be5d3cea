//! One stack of the copy: its revision and the annotations that select its policy, as compressed JSON.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use sindri_model::wire::DeploymentObject;
use sindri_model::{Checksum, Epoch};

/// Largest JSON of one stack: far above the largest bundle that a broker accepts.
const JSON_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A stack as it is in the copy.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StackCopy {
    /// Annotations of the stack, which select its policy.
    pub annotations: BTreeMap<String, String>,
    /// Revision or removal.
    pub revision: DeploymentObject,
}

/// The same for serialization: a bundle may have some megabytes.
#[derive(Serialize)]
struct BorrowedStackCopy<'a> {
    annotations: &'a BTreeMap<String, String>,
    revision: &'a DeploymentObject,
}

/// Serializes and compresses a stack.
pub fn encode(annotations: &BTreeMap<String, String>, revision: &DeploymentObject) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let json = serde_json::to_vec(&BorrowedStackCopy { annotations, revision }).expect("its keys are strings");
    let written = encoder.write_all(&json).and_then(|()| encoder.finish());
    written.expect("a buffer in memory can be written")
}

impl StackCopy {
    /// Decompresses and verifies a stack of a copy of this epoch. An error names no content: a bundle may contain secrets.
    pub fn decode(bytes: &[u8], epoch: Epoch) -> Result<Self, String> {
        let mut json = Vec::new();
        let read = GzDecoder::new(bytes).take(JSON_BYTES_MAX).read_to_end(&mut json);
        read.map_err(|error| format!("it cannot be decompressed: {error}"))?;
        let copy: Self = serde_json::from_slice(&json).map_err(|error| {
            format!("it is not the JSON of a revision (line {}, column {})", error.line(), error.column())
        })?;
        if Checksum::compute(&copy.revision.yaml_content) != copy.revision.yaml_checksum {
            return Err("its bundle does not match its checksum".to_owned());
        }
        if copy.revision.sequence_id.epoch() > epoch {
            return Err(format!("its sequence {} is of an epoch after {epoch}", copy.revision.sequence_id));
        }
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use sindri_model::Sequence;

    use super::*;
    use crate::target::copy::fixtures::revision;

    #[test]
    fn a_record_with_another_bundle_or_of_a_later_epoch_is_rejected() {
        let (annotations, valid) = (BTreeMap::new(), revision(1, 7, "password: hunter2"));
        let decode = |revision: &DeploymentObject| StackCopy::decode(&encode(&annotations, revision), Epoch(1));
        assert_eq!(decode(&valid).map(|copy| copy.revision), Ok(valid.clone()));
        let changed = DeploymentObject { yaml_content: "password: hunter3".to_owned(), ..valid.clone() };
        assert!(decode(&changed).unwrap_err().contains("checksum"));
        let later = DeploymentObject { sequence_id: Sequence(Epoch(2).start().0 + 1), ..valid };
        assert!(decode(&later).unwrap_err().contains("epoch after 1"));
    }
}
