//! Version of a target state: identifies what an agent is to do, with the policies of its stacks.

use std::fmt;
use std::str::FromStr;

use crate::Sequence;

/// Header with the version of the target state to which a response belongs.
pub const TARGET_VERSION_HEADER: &str = "x-sindri-target-version";

/// Version of a target state. Responses with the same version belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetVersion {
    /// Sequence of the last change of the target state itself.
    pub state: Sequence,
    /// Sequence of the last change of a policy, or of the decision on an approval.
    pub recheck: Sequence,
}

impl fmt::Display for TargetVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.state, self.recheck)
    }
}

/// A text that is no version of a target state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the version of a target state")]
pub struct TargetVersionError;

impl FromStr for TargetVersion {
    type Err = TargetVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (state, recheck) = text.split_once('.').ok_or(TargetVersionError)?;
        let parse = |number: &str| number.parse().map(Sequence).map_err(|_| TargetVersionError);
        Ok(Self { state: parse(state)?, recheck: parse(recheck)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_it_was_written() {
        let version = TargetVersion { state: Sequence(12), recheck: Sequence(7) };
        assert_eq!(version.to_string().parse(), Ok(version));
        for text in ["", "12", "12.", "a.b", "1.2.3"] {
            assert_eq!(text.parse::<TargetVersion>(), Err(TargetVersionError), "{text}");
        }
    }
}
