//! Properties of what everybody agrees on.

mod bundles;
