//! Size of the state that is measured in process and on a port.

/// Number of objects.
pub const OBJECTS: usize = 10_000;
/// Size of each: that of a small manifest.
pub const VALUE_BYTES: usize = 1024;
