use leasehold_testkit::servers::{PostgresServer, PsqlSession, until};

use crate::{claim, create, update};

const INVOICE: &str = "CREATE TABLE invoice (id bigint PRIMARY KEY, total bigint, \
                       fence bigint NOT NULL DEFAULT 0); \
                       INSERT INTO invoice (id, total) VALUES (7, 0);";

/// The statements of the page as `claim(resource, fence)` and `set_total(total, fence, id)`, in a
/// session of its own.
struct Holder {
    session: PsqlSession,
    backend: String,
}

impl Holder {
    fn of(server: &PostgresServer) -> Self {
        let mut session = server.session();
        let statements = [
            ("claim (text, bigint)", claim()),
            ("set_total (bigint, bigint, bigint)", update()),
        ];
        for (name, statement) in statements {
            let prepared = session.run(&format!("PREPARE {name} AS {statement};"));
            assert_eq!(prepared, ["PREPARE"]);
        }
        let backend = session.run("SELECT pg_backend_pid();").remove(0);
        Self { session, backend }
    }

    /// The lines that psql answers: rows, tags and errors.
    fn run(&mut self, sql: &str) -> Vec<String> {
        self.session.run(sql)
    }

    /// Begins `sql`, and returns once it waits for a lock of another session.
    fn begin_and_wait(&mut self, sql: &str, observer: &mut PsqlSession) {
        self.session.send(sql);
        let state = format!(
            "SELECT wait_event_type FROM pg_stat_activity WHERE pid = {};",
            self.backend
        );
        until("the statement waits for a lock", || {
            observer.run(&state) == ["Lock"]
        });
    }

    fn answer(&mut self) -> Vec<String> {
        self.session.answer()
    }
}

struct TwoHolders {
    early: Holder,
    later: Holder,
    observer: PsqlSession,
    /// The last to go.
    _server: PostgresServer,
}

impl TwoHolders {
    fn new() -> Self {
        let server = PostgresServer::start();
        let mut observer = server.session();
        assert_eq!(observer.run(&format!("{};", create())), ["CREATE TABLE"]);
        let made = observer.run(INVOICE);
        assert_eq!(made, ["CREATE TABLE", "INSERT 0 1"]);
        Self {
            early: Holder::of(&server),
            later: Holder::of(&server),
            observer,
            _server: server,
        }
    }

    fn total(&mut self) -> Vec<String> {
        self.observer.run("SELECT total FROM invoice;")
    }
}

#[test]
fn row_rejects_only_smaller_fences() {
    let mut holders = TwoHolders::new();
    let TwoHolders { early, later, .. } = &mut holders;
    assert_eq!(early.run("EXECUTE set_total (1, 5, 7);"), ["UPDATE 1"]);
    let max = (1_u64 << 53) - 1;
    for total in [2, 3] {
        let write = format!("EXECUTE set_total ({total}, {max}, 7);");
        assert_eq!(later.run(&write), ["UPDATE 1"]);
    }
    let late = format!("EXECUTE set_total (4, {}, 7);", max - 1);
    assert_eq!(early.run(&late), ["UPDATE 0"]);
    assert_eq!(holders.total(), ["3"]);
}

#[test]
fn claim_rejects_earlier_holders_before_any_write() {
    let mut holders = TwoHolders::new();
    let TwoHolders { early, later, .. } = &mut holders;
    let admitted = ["INSERT 0 1"];
    assert_eq!(early.run("EXECUTE claim ('invoices', 5);"), admitted);
    assert_eq!(later.run("EXECUTE claim ('invoices', 7);"), admitted);
    assert_eq!(later.run("EXECUTE claim ('invoices', 7);"), admitted);
    assert_eq!(early.run("EXECUTE claim ('invoices', 5);"), ["INSERT 0 0"]);
    assert_eq!(early.run("EXECUTE claim ('others', 1);"), admitted);
}

#[test]
fn later_holder_waits_for_admitted_writes() {
    let mut holders = TwoHolders::new();
    let TwoHolders {
        early,
        later,
        observer,
        ..
    } = &mut holders;
    // The row is there, or is only being made: the second claim waits for the first one.
    for (first, second) in [(5, 7), (15, 17)] {
        let write = format!("BEGIN; EXECUTE claim ('invoices', {first});");
        assert_eq!(early.run(&write), ["BEGIN", "INSERT 0 1"]);
        early.run(&format!("UPDATE invoice SET total = {first};"));
        let claim = format!("EXECUTE claim ('invoices', {second});");
        later.begin_and_wait(&claim, observer);
        assert_eq!(early.run("COMMIT;"), ["COMMIT"]);
        assert_eq!(later.answer(), ["INSERT 0 1"]);
        assert_eq!(later.run("SELECT total FROM invoice;"), [first.to_string()]);
        let late = format!("EXECUTE claim ('invoices', {first});");
        assert_eq!(early.run(&late), ["INSERT 0 0"]);
    }
}

/// What a statement of the late holder answers that had to wait for a later one's: 0 rows where it
/// looks again, an error where it may not. Never a write.
#[test]
fn delayed_late_statement_writes_nothing() {
    const SERIALIZATION_FAILURE: &str = "ERROR:  40001";
    let mut holders = TwoHolders::new();
    let TwoHolders {
        early,
        later,
        observer,
        ..
    } = &mut holders;
    later.run("EXECUTE claim ('invoices', 1);");
    let mut fence = 10;
    for (isolation, told) in [
        ("READ COMMITTED", ["INSERT 0 0", "UPDATE 0"]),
        ("REPEATABLE READ", [SERIALIZATION_FAILURE; 2]),
        ("SERIALIZABLE", [SERIALIZATION_FAILURE; 2]),
    ] {
        for (statement, told) in ["claim ('invoices', ", "set_total (9, "].iter().zip(told) {
            let end = if statement.starts_with("claim") {
                ")"
            } else {
                ", 7)"
            };
            let with = |fence: i32| format!("EXECUTE {statement}{fence}{end};");
            fence += 10;
            let begin = format!("BEGIN ISOLATION LEVEL {isolation}; SELECT total FROM invoice;");
            early.run(&begin);
            later.run(&format!("BEGIN; {}", with(fence)));
            early.begin_and_wait(&with(fence - 1), observer);
            assert_eq!(later.run("COMMIT;"), ["COMMIT"]);
            assert_eq!(early.answer(), [told], "{isolation}: {statement}");
            early.run("ROLLBACK;");
            let again = early.run(&with(fence - 1)).remove(0);
            assert!(again.ends_with(" 0"), "done again: {again}");
        }
    }
    let fences = "SELECT l.fence, i.fence FROM leasehold_fence l, invoice i;";
    assert_eq!(observer.run(fences), [format!("{}|{fence}", fence - 10)]);
}

#[test]
fn first_claims_are_serialized() {
    let mut holders = TwoHolders::new();
    let TwoHolders {
        early,
        later,
        observer,
        ..
    } = &mut holders;
    for (end, told) in [("ROLLBACK", "INSERT 0 1"), ("COMMIT", "INSERT 0 0")] {
        let resource = end.to_lowercase();
        later.run(&format!("BEGIN; EXECUTE claim ('{resource}', 7);"));
        early.begin_and_wait(&format!("EXECUTE claim ('{resource}', 5);"), observer);
        assert_eq!(later.run(&format!("{end};")), [end]);
        assert_eq!(early.answer(), [told]);
    }
}

#[test]
fn select_for_update_blocks_late_writes() {
    let mut holders = TwoHolders::new();
    let TwoHolders {
        early,
        later,
        observer,
        ..
    } = &mut holders;
    let seen = "SELECT fence FROM leasehold_fence WHERE resource = 'invoices'";
    later.run("EXECUTE claim ('invoices', 5);");

    assert_eq!(early.run(&format!("BEGIN; {seen};")), ["BEGIN", "5"]);
    assert_eq!(later.run("EXECUTE claim ('invoices', 7);"), ["INSERT 0 1"]);
    let late = early.run("UPDATE invoice SET total = 1; COMMIT;");
    assert_eq!(late, ["UPDATE 1", "COMMIT"], "after the claim of fence 7");

    assert_eq!(
        early.run(&format!("BEGIN; {seen} FOR UPDATE;")),
        ["BEGIN", "7"]
    );
    later.begin_and_wait("EXECUTE claim ('invoices', 9);", observer);
    let in_time = early.run("UPDATE invoice SET total = 2; COMMIT;");
    assert_eq!(in_time, ["UPDATE 1", "COMMIT"]);
    assert_eq!(later.answer(), ["INSERT 0 1"]);
}
