use crate::config::Addresses;
use crate::output::failure::Failure;
use crate::store::files::is_file;

/// The kind of store that addresses name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreAddress<'a> {
    /// This address of a folder.
    Folder(&'a str),
    /// These addresses of servers, one or more.
    Servers(&'a [String]),
}

impl<'a> StoreAddress<'a> {
    pub(crate) fn of(addresses: &'a Addresses) -> Result<Self, Failure> {
        let urls = addresses.urls.as_slice();
        match urls {
            [url] if is_file(url) => Ok(Self::Folder(url)),
            urls if urls.iter().any(|url| is_file(url)) => addresses.blame(Err(Failure::usage(
                "a file store cannot be part of a quorum; use it alone, or list servers only",
            ))),
            urls => Ok(Self::Servers(urls)),
        }
    }
}

impl Addresses {
    /// Adds the source of the addresses to a failure.
    pub(crate) fn blame<T>(&self, outcome: Result<T, impl Into<Failure>>) -> Result<T, Failure> {
        outcome.map_err(|failure| {
            let failure = failure.into();
            Failure::new(failure.code, format!("{}: {failure}", self.source))
        })
    }
}

/// Whether the address has a scheme of a server.
pub(super) fn is_server(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    matches!(
        scheme,
        Some("redis" | "rediss" | "valkey" | "valkeys" | "unix")
    )
}
