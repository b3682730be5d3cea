//! Colours of states.

use sindri_model::wire::AssignmentState;

use crate::output::Style;

/// Returns the colour of a state.
pub(crate) fn style_of_state(state: AssignmentState) -> Style {
    match state {
        AssignmentState::Failed | AssignmentState::Blocked | AssignmentState::Offline => Style::Bad,
        AssignmentState::Inactive
        | AssignmentState::Drifted
        | AssignmentState::Suspended
        | AssignmentState::Removing
        | AssignmentState::Progressing
        | AssignmentState::Pending => Style::Warning,
        AssignmentState::Ready | AssignmentState::Removed => Style::Good,
    }
}
