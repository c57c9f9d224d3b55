//! Bugs of PostgreSQL, etcd and ZooKeeper.

use super::bug::Bug;

pub(super) const BUGS: &[Bug] = &[
    Bug {
        name: "postgres-break-opens-at-once",
        suite: "postgres",
        breaks: "an operator breaks a lease at its end, and the lock opens at once while its holder works on",
        file: "crates/leasehold-postgres/sql/break.sql",
        old: "    if existed and p_at_once then\n",
        new: "    if existed then\n",
    },
    Bug {
        name: "postgres-end-of-a-wait-frees",
        suite: "postgres",
        breaks: "a waiter that gives up frees the lease of the holder",
        file: "crates/leasehold-postgres/sql/release.sql",
        old: "        l.owner := nullif(l.owner, p_owner);\n",
        new: "        l.owner := null;\n",
    },
    Bug {
        name: "postgres-one-permit-too-many",
        suite: "postgres",
        breaks: "the lock has room for one permit more than it has",
        file: "crates/leasehold-postgres/sql/acquire.sql",
        old: "p_number < p_mode))",
        new: "p_number <= p_mode))",
    },
    Bug {
        name: "etcd-nearest-entry-only",
        suite: "etcd",
        breaks: "a waiter looks only at the entry directly before it, so a reader behind a reader passes the writer before both",
        file: "crates/leasehold-etcd/src/locking/order.rs",
        old: "    if let Some(entry) = before.find(|entry| excludes(entry.mode, mode)) {\n",
        new: "    if let Some(entry) = before.next().filter(|entry| excludes(entry.mode, mode)) {\n",
    },
    Bug {
        name: "etcd-break-opens-at-once",
        suite: "etcd",
        breaks: "an operator breaks a lease at its end, and the lock opens at once while its holder works on",
        file: "crates/leasehold-etcd/src/store/admin.rs",
        old: "            let closed_for = if record.at_once {\n",
        new: "            let closed_for = if record.at_once || existed {\n",
    },
    Bug {
        name: "etcd-fence-without-a-comparison",
        suite: "etcd",
        breaks: "a fence is drawn without a look at the last one, so a waiter with an old clock gets a smaller one",
        file: "crates/leasehold-etcd/src/locking/transactions.rs",
        old: "            compare: vec![is_greater],\n",
        new: "            compare: vec![is_greater].split_off(1),\n",
    },
    Bug {
        name: "etcd-reader-passes-who-barged",
        suite: "etcd",
        breaks: "a reader does not see a writer that went ahead of the queue",
        file: "crates/leasehold-etcd/src/locking/transactions.rs",
        old: "return vec![is_empty(names.writers(lock)), is_empty(names.ahead(lock))];",
        new: "return vec![is_empty(names.writers(lock))];",
    },
    Bug {
        name: "zookeeper-break-opens-too-early",
        suite: "zookeeper",
        breaks: "an operator breaks a lease at its end, and the lock opens before the last renewal of its holder is over",
        file: "crates/leasehold-zookeeper/src/store/admin.rs",
        old: "        Ok(now.saturating_add(millis(ttl)))\n",
        new: "        Ok(now.saturating_add(millis(ttl / 100)))\n",
    },
    Bug {
        name: "zookeeper-reader-joins-a-writer",
        suite: "zookeeper",
        breaks: "a reader joins the holder before it without a look whether that one shares the lock",
        file: "crates/leasehold-zookeeper/src/store/acquire.rs",
        old: "if !NodeData::read(&data).is_some_and(|data| data.shared) {",
        new: "if NodeData::read(&data).is_none() {",
    },
];
