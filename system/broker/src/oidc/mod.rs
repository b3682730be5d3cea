//! Login of people with tokens of an OpenID Connect provider, instead of keys.
//!
//! The broker verifies a token with the public keys of the provider, which it fetches and caches (`provider`, `keys`), and reads the
//! subject and the role from its claims (`token`). It never sees a password, and has no secret of its own there.

mod keys;
mod provider;
mod settings;
mod token;

pub use provider::{FetchDocument, OidcProvider};
pub use settings::OidcSettings;
pub(crate) use token::{Person, TokenError, is_token};
