//! Names of the label and the annotations that agents give to the objects of a stack.

/// Annotation: id of the stack that declares the object.
pub const STACK_ANNOTATION: &str = "brokkr.io/stack-id";
/// Annotation: checksum of the revision that was last applied to the object.
pub const CHECKSUM_ANNOTATION: &str = "brokkr.io/checksum";
/// Annotation: the object's own key; in a copy it does not match the copy's key.
pub const OBJECT_ANNOTATION: &str = "brokkr.io/object";
/// Label: id of the stack, for label selectors.
pub const STACK_LABEL: &str = "brokkr.io/stack";

/// Annotations that agents set.
pub const OWNERSHIP_ANNOTATIONS: [&str; 3] = [CHECKSUM_ANNOTATION, OBJECT_ANNOTATION, STACK_ANNOTATION];

/// Returns true if `name` is an ownership label or annotation; `section` is `labels` or `annotations`.
pub fn is_ownership_key(section: &str, name: &str) -> bool {
    match section {
        "annotations" => OWNERSHIP_ANNOTATIONS.contains(&name),
        "labels" => name == STACK_LABEL,
        _ => false,
    }
}
