use nix::unistd::{Uid, User};

/// The user of this process, by name or otherwise by number.
pub(crate) fn name() -> String {
    let uid = Uid::current();
    let known = User::from_uid(uid).ok().flatten();
    known.map_or_else(|| format!("uid {uid}"), |user| user.name)
}
