//! I2: each grant has a greater fence than all before it.

use super::{History, Violation};

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let grants = history.holds.iter().filter(|hold| !hold.is_adopted);
    let grants: Vec<_> = grants
        .filter_map(|hold| hold.granted.map(|(at, fence)| (hold, at, fence)))
        .collect();
    for (hold, _, fence) in &grants {
        for (earlier, granted, before) in &grants {
            if earlier.lock != hold.lock {
                continue;
            }
            let is_other = (earlier.client, earlier.number) != (hold.client, hold.number);
            if *granted < hold.asked && before >= fence || is_other && before == fence {
                let text = format!("{earlier} was granted before {hold} was asked for");
                found.push(Violation::new("fences", text));
            }
        }
    }
    found
}
