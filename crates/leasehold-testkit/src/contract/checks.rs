//! The names of all checks, and what each of them needs.

use std::future::Future;
use std::pin::Pin;

use super::fixture::Fixture;
use super::modes::{downgrade, permits, writers};
use super::optional::{breaking, inspection, records};
use super::waiting::{idle, outage, queue, wait};
use super::{
    acquire, cancellation, contention, expiry, fencing, login, network, random_calls, release,
    renew, runtime, store,
};
use crate::harness::Optional;

/// One test of the contract.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) needs: Needs,
    /// The optional traits that the test calls. The test is ignored if the store lacks one of them.
    pub(super) calls: &'static [Optional],
    pub(super) run: for<'a> fn(&'a Fixture) -> Pin<Box<dyn Future<Output = ()> + 'a>>,
}

/// What a store must be for a test to make sense. For other stores the test does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    Nothing,
    Processes,
    /// The test starts a server that asks for a password.
    Login,
    /// The test breaks the network, so it has proxies of its own.
    Network,
    /// The test counts requests, if the store has servers.
    Counts,
}

/// Lists checks by their names, so that a test always has the name of its function.
macro_rules! checks {
    ($($module:ident, $needs:ident $calls:tt :: { $($name:ident),+ $(,)? })+) => {
        &[$($(Check {
            name: stringify!($name),
            needs: Needs::$needs,
            calls: checks!(@calls $calls),
            run: |fixture| Box::pin($module::$name(fixture)),
        }),+),+]
    };
    (@calls [$($optional:ident),*]) => { &[$(Optional::$optional),*] };
}

/// Every test of the contract. The name begins with the obligation's number.
pub(super) const CHECKS: &[Check] = checks! {
    store, Processes []::{
        s1_two_processes_grant_the_same_locks,
    }
    store, Nothing []::{
        s1_two_handles_grant_the_same_locks,
        s2_guarantees_and_terms_never_change,
        s3_descriptions_and_errors_hold_no_credentials,
        s4_optional_traits_are_those_the_suite_names,
    }
    login, Login []::{
        s5_wrong_logins_are_refused,
        s5_new_password_takes_effect_while_held,
    }
    acquire, Nothing []::{
        a1_an_exclusive_claim_excludes_all_others,
        a1_different_keys_do_not_touch_each_other,
        a2_shared_claims_hold_together_or_are_refused,
        a2_a_shared_claim_excludes_exclusive_ones,
        a2_concurrent_readers_have_distinct_fences,
        a5_busy_answer_leaves_nothing,
    }
    random_calls, Nothing []::{
        a1_random_calls_follow_a_model,
    }
    permits, Nothing []::{
        a8_each_permit_has_one_holder,
        a8_differing_permit_count_is_refused,
        a8_permits_exclude_other_modes,
        a8_leases_that_end_let_as_many_in,
        a8_contenders_never_hold_more_than_there_are,
    }
    contention, Processes []::{
        a1_processes_count_exactly_with_growing_fences,
    }
    contention, Nothing []::{
        a1_64_contenders_count_exactly,
    }
    fencing, Processes []::{
        a4_fences_grow_across_processes,
    }
    fencing, Nothing []::{
        a4_every_fence_is_greater_than_all_before,
        a4_fences_grow_though_a_clock_went_back,
        a4_fences_grow_after_key_is_forgotten,
    }
    expiry, Processes []::{
        a6_a_killed_holder_frees_the_lock,
    }
    expiry, Nothing []::{
        a6_lease_ends_by_itself,
    }
    cancellation, Nothing []::{
        a7_dropped_attempt_leaves_nothing,
        a7_dropped_acquisition_leaves_nothing,
        a7_dropped_wait_leaves_nothing,
        a12_unpolled_attempt_is_released,
        a12_closed_client_leaves_nothing,
        f3_a_release_never_overtakes_its_own_attempt,
    }
    runtime, Nothing []::{
        a9_waiter_needs_no_runtime,
    }
    renew, Nothing []::{
        r1_renewing_never_takes_a_lock,
        r1_renewing_never_takes_from_another_holder,
        r2_bad_claim_harms_no_other_in_batch,
        r3_a_renewed_lease_outlives_its_first_ttl,
        r3_guard_outlives_its_first_ttl,
    }
    downgrade, Nothing []::{
        r4_shared_renewal_downgrades_an_exclusive_lease,
        r4_late_exclusive_message_undoes_nothing,
        r4_shared_release_frees_either_mode,
        r4_shared_renewal_takes_no_lock,
        r4_downgrade_admits_no_writer,
        r4_guard_downgrades_or_reports_failure,
        r4_barging_reader_joins_a_downgraded_lock,
    }
    downgrade, Nothing [Inspection]::{
        r4_waiting_reader_joins_a_downgraded_lock,
    }
    release, Nothing []::{
        f1_a_released_lock_is_granted_at_once,
        f1_a_dropped_guard_frees_the_lock,
        f1_the_last_share_frees_the_lock,
        f2_a_stale_release_touches_nobody,
        f4_released_lock_is_free_after_flush,
    }
    wait, Nothing []::{
        a4_fence_of_a_waiter_exceeds_the_clock,
        w1_freed_lock_is_granted_to_the_waiter,
        w2_busy_lock_is_reported,
    }
    idle, Counts []::{
        w1_idle_wait_asks_rarely,
        w6_more_waiters_cost_no_more_requests,
    }
    outage, Network []::{
        w2_frozen_server_is_reported_and_survived,
    }
    network, Network []::{
        a7_attempt_in_a_broken_network_leaves_nothing,
        a11_lease_counts_from_its_request,
        a10_cut_attempt_leaves_what_it_says,
        f3_attempt_that_arrives_after_its_release_is_void,
        f4_cut_release_frees_the_lock,
        f5_release_ends_though_no_answer_comes,
        w7_one_bad_server_delays_no_call,
    }
    queue, Nothing [Inspection]::{
        w3_waiters_are_served_in_arrival_order,
        w3_nobody_else_gets_the_lock_before,
        w3_first_requests_at_once_keep_the_place,
        w3_refused_waiter_is_queued_at_once,
        w3_a_wait_that_ended_is_passed_over,
        w4_cancelled_waiter_leaves_the_queue,
        w4_reserved_lock_passes_on_when_waiter_leaves,
        h3_waiters_are_named_in_order,
    }
    writers, Nothing []::{
        w5_a_waiting_writer_keeps_later_readers_out,
        w5_cancelled_writer_lets_readers_in,
        w5_steady_readers_starve_no_writer,
        w5_steady_writers_starve_no_reader,
    }
    inspection, Nothing [Inspection]::{
        h1_holders_are_named_while_they_hold,
        h4_listing_names_the_held_locks_that_match,
    }
    breaking, Nothing [Admin, Inspection]::{
        b1_next_renewal_reports_the_break,
        b2_broken_lock_stays_closed_until_lease_end,
        b2_broken_share_excludes_until_lease_end,
        b3_current_holder_keeps_the_lock,
        b3_other_holders_keep_their_share,
        b4_lock_broken_at_once_is_free,
        b4_lock_broken_at_once_is_handed_over,
        b4_share_broken_at_once_is_over,
        b5_broken_lease_never_returns,
        b6_the_record_is_kept,
        b7_release_opens_a_broken_lock,
    }
    records, Nothing [Records]::{
        p1_what_was_written_last_is_shown,
        p1_a_long_value_is_shown_whole,
        p2_a_smaller_fence_is_shut_out,
        p2_a_write_shuts_out_smaller_fences_too,
        p3_the_same_fence_goes_on,
        p4_value_ends_with_its_retention,
        p4_each_write_begins_the_retention_anew,
        p5_reading_changes_nothing,
    }
    records, Nothing [Records, Inspection]::{
        p6_a_record_is_no_lock,
        p7_listing_names_the_records_that_match,
    }
};
