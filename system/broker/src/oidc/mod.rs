//! Login of people with tokens of an OpenID Connect provider, instead of keys.
//!
//! The broker verifies a token with the public keys of the provider, which it fetches and caches (`provider`, `key_cache`, `keys`), and reads
//! the subject and the role from its claims (`token`). It never sees a password, and has no secret of its own there.

mod key_cache;
mod keys;
mod person_name;
mod provider;
mod settings;
mod token;

pub(crate) use person_name::{is_person_name, person_name};
pub use provider::{FetchDocument, OidcProvider};
pub use settings::OidcSettings;
pub(crate) use token::{Person, TokenError, is_token};
