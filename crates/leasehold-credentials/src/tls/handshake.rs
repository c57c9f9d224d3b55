use std::io;
use std::sync::Arc;

use leasehold::{Error, ErrorKind};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, AlertDescription as Alert, ClientConfig, InvalidMessage};

/// Encrypts `stream`, to the server that calls itself `host`.
///
/// # Errors
///
/// [`ErrorKind::Refused`] if one side does not accept the other, and [`ErrorKind::Unreachable`] if the connection broke.
///
/// # Cancel safety
///
/// Dropping the future closes the connection.
pub async fn handshake(
    config: Arc<ClientConfig>,
    stream: TcpStream,
    host: &str,
) -> Result<TlsStream<TcpStream>, Error> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        let rule = format!("{host:?} is not a name that a certificate can be for");
        Error::new(ErrorKind::InvalidInput, rule)
    })?;
    let connected = TlsConnector::from(config).connect(name, stream).await;
    connected.map_err(|error| {
        if let Some(refusal) = refusal(&error) {
            return refusal;
        }
        let kind = match failure_in(&error) {
            Some(_) => ErrorKind::Refused,
            None => ErrorKind::Unreachable,
        };
        Error::new(kind, format!("no TLS connection: {error}")).with_source(error)
    })
}

/// Returns the error for a failure of TLS that has a known remedy. It may come after the handshake: a server checks the
/// certificate of the client last.
pub fn refusal(error: &io::Error) -> Option<Error> {
    let failure = failure_in(error)?;
    let text = match failure {
        rustls::Error::AlertReceived(Alert::CertificateRequired) => {
            "the server demands a client certificate; name it by the parameters cert=FILE and key=FILE".into()
        }
        rustls::Error::AlertReceived(
            alert @ (Alert::AccessDenied
            | Alert::BadCertificate
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::DecryptError
            | Alert::UnknownCA
            | Alert::UnsupportedCertificate),
        ) => format!(
            "the server refuses the certificate of the client ({alert:?}); check the file that the parameter `cert` \
             names, and the authorities of the server"
        ),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS on this port; use its port for TLS, or an address without TLS".into()
        }
        rustls::Error::InvalidCertificate(_) => format!(
            "no TLS connection: {failure}; the authority of the server must be in the file that the parameter `ca` \
             names, and the certificate must be for this host"
        ),
        _ => return None,
    };
    Some(Error::new(ErrorKind::Refused, text))
}

fn failure_in(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
