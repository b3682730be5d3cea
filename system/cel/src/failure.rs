//! Why a rule has no value.

use thiserror::Error;

/// Why a rule has no value. Shown, it is what the real API server says, which may quote a value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// An error of the expression; another operand of `&&` or `||` may make up for it.
    #[error("{said}")]
    Wrong {
        /// What the real server says.
        said: String,
        /// The same without any value of the object.
        discreet: String,
    },
    /// The steps are used up, and nothing makes up for that.
    #[error("operation cancelled: actual cost limit exceeded")]
    Exhausted,
}

impl Failure {
    /// An error whose words hold no value.
    pub(crate) fn wrong(said: impl Into<String>) -> Self {
        let said = said.into();
        Self::Wrong { discreet: said.clone(), said }
    }

    /// An error whose words hold a value, and those that do not.
    pub(crate) fn about(said: impl Into<String>, discreet: impl Into<String>) -> Self {
        Self::Wrong { said: said.into(), discreet: discreet.into() }
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::wrong("no such overload")
    }

    /// What may be told to whoever may not see the object: no value is quoted.
    pub fn discreet(&self) -> String {
        match self {
            Self::Wrong { discreet, .. } => discreet.clone(),
            Self::Exhausted => self.to_string(),
        }
    }
}
