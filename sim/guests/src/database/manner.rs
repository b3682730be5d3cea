//! How the controller goes about its work. The default is right; every other value is a mistake that people make.

/// How children are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Names {
    /// After their parent: whoever asks for it twice gets it once.
    #[default]
    Given,
    /// As the server likes. A create that was not answered is simply sent again, and makes a second child.
    Generated,
}

/// How children are changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Updates {
    /// Only the version that was read.
    #[default]
    Versioned,
    /// Whatever is there by now: what somebody else wrote since it was read is lost.
    Blind,
}

/// When the status is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reports {
    /// When everything else is done.
    #[default]
    Last,
    /// Before anything is done, in good hope.
    First,
}

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// How children are called.
    pub names: Names,
    /// How children are changed.
    pub updates: Updates,
    /// When the status is written.
    pub reports: Reports,
}
