//! Passwords, and what happens when one changes.

use std::sync::{Arc, Mutex};

use leasehold::store::{Store, locked};
use leasehold::{Client, Error, ErrorKind};

use super::fixture::{Fixture, TIMEOUT};
use crate::harness::{Login, LoginServer};
use leasehold::clock::{Clock as _, SystemClock};

const PASSWORD: &str = "first-secret";

fn started(fixture: &Fixture) -> Box<dyn LoginServer> {
    let start = fixture.suite.start_login;
    start.expect("a suite with a login")(PASSWORD)
}

/// A function that returns the password which its caller can change.
fn function() -> (Arc<Mutex<String>>, Login) {
    let current = Arc::new(Mutex::new(PASSWORD.to_owned()));
    let read = Arc::clone(&current);
    let function = Login::Function(Arc::new(move || locked(&read).clone()));
    (current, function)
}

async fn takes_a_lock(client: &Client, name: &str) -> Result<(), Error> {
    let lock = client.lock(name).wait(TIMEOUT);
    lock.acquire().await?.release().await?;
    Ok(())
}

pub(crate) async fn s5_wrong_logins_are_refused(fixture: &Fixture) {
    let server = started(fixture);
    let right = Client::new(server.open(&Login::Password(PASSWORD.into())));
    takes_a_lock(&right, "a").await.expect("the right password");
    let wrong = "second-secret".to_owned();
    let returned = wrong.clone();
    let function = Login::Function(Arc::new(move || returned.clone()));
    for login in [Login::None, Login::Password(wrong), function] {
        let store: Arc<dyn Store> = server.open(&login);
        let tried = takes_a_lock(&Client::new(Arc::clone(&store)), "a").await;
        let error = tried.expect_err("a refusal");
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        let texts = format!("{store} {store:?} {error} {error:?}");
        assert!(!texts.contains("secret"), "a password shows in {texts}");
    }
}

pub(crate) async fn s5_new_password_takes_effect_while_held(fixture: &Fixture) {
    let server = started(fixture);
    let file = tempfile::NamedTempFile::new().expect("a file");
    let write = |password: &str| std::fs::write(file.path(), format!("{password}\n"));
    write(PASSWORD).expect("a file");
    let (current, function) = function();
    let logins = [Login::File(file.path().into()), function];
    let clients = logins.map(|login| Client::new(server.open(&login)));
    let mut guards = Vec::new();
    for (name, client) in ["a", "b"].iter().zip(&clients) {
        guards.push(client.lock(name).acquire().await.expect("a lock"));
    }
    write("second-secret").expect("a file");
    *locked(&current) = "second-secret".into();
    if !server.change_password("second-secret") {
        write(PASSWORD).expect("a file");
        *locked(&current) = PASSWORD.into();
    }
    for (name, client) in ["c", "d"].iter().zip(&clients) {
        let end = SystemClock.now() + TIMEOUT;
        while let Err(error) = takes_a_lock(client, name).await {
            assert!(SystemClock.now() < end, "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
            fixture.pause().await;
        }
    }
    for guard in guards {
        assert!(guard.is_valid());
        guard.release().await.expect("a release");
    }
}
