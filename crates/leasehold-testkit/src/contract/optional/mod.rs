//! The obligations of the optional traits.

pub(super) mod breaking;
pub(super) mod inspection;
pub(super) mod records;
