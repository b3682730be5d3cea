//! Settings of the provider whose tokens are accepted.

/// Provider whose tokens are accepted, and the roles that they give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcSettings {
    /// URL of the provider, exactly as its tokens have it in `iss`.
    pub issuer: String,
    /// Value that must be in `aud`: the client id of the command line, or the name of this broker at the provider.
    pub audience: String,
    /// Claim with the roles or groups of a person: a text or a list of texts.
    pub role_claim: String,
    /// Values of that claim that give all permissions.
    pub admin_values: Vec<String>,
    /// Values of that claim that give permission to read.
    pub reader_values: Vec<String>,
}
