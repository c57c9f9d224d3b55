use leasehold::clock::{Clock as _, SystemClock};
use serde_json::Value;

use crate::output::time_text;

/// The version of every JSON object. It changes if a field changes its meaning or is removed.
const VERSION: u32 = 1;

/// Adds what every JSON object of the program has: its version, and the time by the clock of this machine.
pub(crate) fn stamped(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.insert("version".into(), VERSION.into());
        let time = time_text::instant(SystemClock.wall());
        fields.insert("time".into(), time.into());
    }
    object
}
