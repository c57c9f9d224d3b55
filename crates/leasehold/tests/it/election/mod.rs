//! Leaders, and what they announce.

mod announcing;
mod leading;
