//! Several servers under one id: the design holds, and each of its rules is needed.

use leasehold_model::identity::IdentityStart::{EarlyList, ForgetfulPeer, ReplacedTwice};
use leasehold_model::identity::{IDENTITY_DESIGN, IdentityRules, search_identities};

#[test]
fn one_id_has_one_server() {
    for start in [EarlyList, ReplacedTwice, ForgetfulPeer] {
        let found = search_identities(IDENTITY_DESIGN, start);
        assert_eq!(found.broken, None, "{start:?}");
        assert!(
            found.later_server_wins,
            "{start:?}: the search is not empty"
        );
    }
}

#[test]
fn each_rule_of_admissions_is_needed() {
    let broken = [
        (
            "record at once",
            IdentityRules {
                known_first: false,
                ..IDENTITY_DESIGN
            },
        ),
        (
            "earlier servers return",
            IdentityRules {
                ordered: false,
                ..IDENTITY_DESIGN
            },
        ),
        (
            "the epoch stays",
            IdentityRules {
                epoch_changes: false,
                ..IDENTITY_DESIGN
            },
        ),
        (
            "the epoch stays at first",
            IdentityRules {
                epoch_changes_at_first: false,
                ..IDENTITY_DESIGN
            },
        ),
        (
            "waits from its first record",
            IdentityRules {
                waits_from_confirmation: false,
                ..IDENTITY_DESIGN
            },
        ),
    ];
    for (name, rules) in broken {
        let is_broken = |start| search_identities(rules, start).broken.is_some();
        assert!(
            [EarlyList, ReplacedTwice, ForgetfulPeer]
                .into_iter()
                .any(is_broken),
            "{name}"
        );
    }
}
