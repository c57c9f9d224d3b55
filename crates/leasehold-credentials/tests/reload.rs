//! Files that change while a client runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold::ErrorKind;
use leasehold_credentials::{TlsClient, TlsFiles};
use leasehold_testkit::servers::TestCa;
use leasehold_testkit::telemetry::TraceRecorder;

/// The files of a client, in a folder of their own.
struct Files {
    folder: tempfile::TempDir,
}

impl Files {
    fn of(ca: &TestCa) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let files = Self { folder };
        files.copy(&ca.certificate(), "ca");
        files.replace_identity(ca);
        files
    }

    fn replace_identity(&self, ca: &TestCa) {
        let (cert, key) = ca.sign_client("ann");
        self.copy(&cert, "cert");
        self.copy(&key, "key");
    }

    fn copy(&self, from: &Path, name: &str) {
        fs::copy(from, self.path(name)).expect("a copy");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn names(&self) -> TlsFiles {
        TlsFiles {
            ca: Some(self.path("ca")),
            identity: Some((self.path("cert"), self.path("key"))),
        }
    }

    fn client(&self) -> TlsClient {
        self.names().check().expect("usable files");
        TlsClient::new(self.names(), &[])
    }
}

#[tokio::test]
async fn configuration_changes_with_the_files_alone() {
    let ca = TestCa::new();
    let files = Files::of(&ca);
    let client = files.client();
    let first = client.config().await.expect("a configuration");
    // The same content, with another time of modification.
    files.copy(&ca.certificate(), "ca");
    let again = client.config().await.expect("a configuration");
    assert!(Arc::ptr_eq(&first, &again));
    files.replace_identity(&ca);
    let next = client.config().await.expect("a configuration");
    assert!(!Arc::ptr_eq(&first, &next));
    files.copy(&TestCa::new().certificate(), "ca");
    let last = client.config().await.expect("a configuration");
    assert!(!Arc::ptr_eq(&next, &last));
}

#[tokio::test]
async fn unusable_files_leave_the_earlier_ones_in_use() {
    let ca = TestCa::new();
    let files = Files::of(&ca);
    let client = files.client();
    let first = client.config().await.expect("a configuration");
    let log = TraceRecorder::new();
    let _watch = log.watch();
    let other = ca.sign_client("bob").1;
    for break_file in [
        &(|| fs::write(files.path("ca"), "nonsense").expect("a file")) as &dyn Fn(),
        &|| fs::remove_file(files.path("ca")).expect("a file"),
        // The certificate and the key of two clients.
        &|| {
            files.copy(&ca.certificate(), "ca");
            files.copy(&other, "key");
        },
    ] {
        break_file();
        let before = log.events().len();
        for _ in 0..3 {
            let config = client.config().await.expect("the earlier configuration");
            assert!(Arc::ptr_eq(&first, &config));
        }
        let said = log.events().split_off(before);
        assert_eq!(said.len(), 1, "{said:?}");
    }
    files.replace_identity(&ca);
    let repaired = client.config().await.expect("a configuration");
    assert!(!Arc::ptr_eq(&first, &repaired));
}

#[tokio::test]
async fn files_that_were_never_usable_are_an_error() {
    let files = Files::of(&TestCa::new());
    for (name, content, rule) in [
        ("ca", "", "no certificate in it"),
        ("cert", "nonsense", "no certificate in it"),
        ("key", "", "a private key in PEM"),
    ] {
        fs::write(files.path(name), content).expect("a file");
        let error = files.names().check().expect_err("an error");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        let path = files.path(name).display().to_string();
        assert!(text.contains(rule) && text.contains(&path), "{text}");
        let client = TlsClient::new(files.names(), &[]);
        assert!(client.config().await.is_err());
        files.copy(&TestCa::new().certificate(), "ca");
        files.replace_identity(&TestCa::new());
    }
}
