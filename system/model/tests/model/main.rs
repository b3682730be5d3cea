//! Property tests of the model.

mod bundles;
