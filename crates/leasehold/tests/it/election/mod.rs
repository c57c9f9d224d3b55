//! Leaders, and what they announce.

mod announcing;
mod lead;
mod leading;
