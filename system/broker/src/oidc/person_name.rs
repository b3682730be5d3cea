//! Names of people, which no administrator with a key has.

/// Beginning of the name, before the subject.
const PREFIX: &str = "oidc:";

/// Returns the name of the person with this subject.
pub(crate) fn person_name(subject: &str) -> String {
    format!("{PREFIX}{subject}")
}

/// Returns true if a name is one of a person.
pub(crate) fn is_person_name(name: &str) -> bool {
    name.starts_with(PREFIX)
}
