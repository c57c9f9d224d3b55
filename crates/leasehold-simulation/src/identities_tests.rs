use crate::run::run_two_lists;

#[test]
fn lists_with_two_servers_under_one_id_exclude_each_other() {
    let mut grants = 0;
    for seed in 0..60 {
        let outcome = run_two_lists(seed);
        grants += outcome.grants.0;
        let broken = outcome.violations.iter().find(|it| it.check == "exclusion");
        assert!(broken.is_none(), "seed {seed}: {}", broken.unwrap());
    }
    assert!(grants > 1_000, "only {grants} grants");
}
