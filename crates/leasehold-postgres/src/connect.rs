//! Opens connections.

use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use leasehold::Error;
use leasehold::store::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::Host;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Notification};

use crate::failure;
use crate::tls::Tls;
use crate::url::Settings;

/// The address of the server, and its authorities.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) settings: Settings,
    pub(crate) tls: Tls,
}

/// What reads and writes a connection. It yields notifications, and ends with the connection.
pub(crate) struct Driver(Pin<Box<dyn DriveOne + Send>>);

trait DriveOne {
    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Notification>>;
}

impl<S, T> DriveOne for Connection<S, T>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    fn poll_next(
        self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> Poll<Option<Notification>> {
        let connection = self.get_mut();
        loop {
            match connection.poll_message(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(Ok(AsyncMessage::Notification(found)))) => {
                    return Poll::Ready(Some(found));
                }
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) => return Poll::Ready(None),
            }
        }
    }
}

impl Driver {
    /// Drives the connection until a notification comes; `None` at its end.
    pub(crate) async fn next(&mut self) -> Option<Notification> {
        poll_fn(|context| self.0.as_mut().poll_next(context)).await
    }

    /// Drives the connection to its end.
    pub(crate) async fn run(mut self) {
        while self.next().await.is_some() {}
    }
}

impl Place {
    /// Connects and logs in.
    pub(crate) fn connect(self: &Arc<Self>) -> BoxFuture<'static, Result<(Client, Driver), Error>> {
        let place = Arc::clone(self);
        Box::pin(async move {
            let connector = place.tls.connector().await?;
            let connected = place.settings.config.connect(connector).await;
            let (client, connection) = connected.map_err(failure::of_connecting)?;
            Ok((client, Driver(Box::pin(connection))))
        })
    }
}

/// Returns the password for this server in a file of libpq's form: `host:port:database:user:password` in each line.
pub(crate) fn password_in(file: &Path, config: &Config) -> Result<String, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("passfile {}: {error}", file.display()))?;
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.as_str(),
        _ => "localhost",
    };
    let port = config.get_ports().first().unwrap_or(&5432).to_string();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let found = text
        .lines()
        .find_map(|line| matched(line, [host, &port, database, user]));
    found.ok_or_else(|| format!("passfile {} has no line for this server", file.display()))
}

/// Returns the password of a line that is for this server. `\` takes the meaning from `:` and `\`.
pub(crate) fn matched(line: &str, wanted: [&str; 4]) -> Option<String> {
    let mut fields = vec![String::new()];
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => fields.last_mut()?.extend(rest.next()),
            ':' if fields.len() < 5 => fields.push(String::new()),
            c => fields.last_mut()?.push(c),
        }
    }
    let password = (fields.len() == 5).then(|| fields.pop())??;
    let is_for = |(field, wanted): (&String, &str)| field == "*" || field == wanted;
    let fields = fields.iter().zip(wanted);
    (!line.starts_with('#') && fields.into_iter().all(is_for)).then_some(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn password_is_that_of_the_first_line_that_matches() {
        let wanted = ["h", "5432", "app", "ann"];
        for (line, password) in [
            ("h:5432:app:ann:secret", Some("secret")),
            ("*:*:*:ann:a\\:b\\\\c", Some("a:b\\c")),
            ("h:5432:app:ann:a:b", Some("a:b")),
            ("h:5433:app:ann:x", None),
            ("#h:5432:app:ann:x", None),
            ("h:5432:app", None),
        ] {
            assert_eq!(matched(line, wanted).as_deref(), password, "{line}");
        }
    }
}
