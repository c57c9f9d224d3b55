/// The keys, as the help lists them.
pub(super) const KEYS: [(&str, &str); 9] = [
    ("↑ ↓ k j", "select a lock, and show its queue"),
    (
        "PgUp PgDn",
        "go to another page; Home and End to the first and the last lock",
    ),
    (
        "/",
        "filter by a text in names and holders; Esc shows all again",
    ),
    ("s", "sort by name, time held, time left, waiters, or host"),
    ("r", "reverse the order"),
    ("b", "break the lease of the selected lock"),
    ("Enter", "ask the store now"),
    ("?", "show or hide this list"),
    ("q", "quit, as does Ctrl-C"),
];
