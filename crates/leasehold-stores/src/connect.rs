use leasehold::{Client, Error, blocking};

/// Opens a client by the address of its store: [`Client`], or [`blocking::Client`].
///
/// The library itself knows no stores, so this is a trait of the crate that knows all.
pub trait Connect: Sized {
    /// Returns a client of the store at `addresses`, in the forms that [the crate](crate#addresses) lists.
    ///
    /// Sends nothing: the first lock connects to the servers. A folder of lock files is created if it is absent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](leasehold::ErrorKind::InvalidInput) for an address that breaks a rule; the error names
    /// both. [`ErrorKind::Unsupported`](leasehold::ErrorKind::Unsupported) if this build lacks the store; the error names
    /// the scheme and the feature. A folder that cannot be used.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use leasehold::Client;
    /// use leasehold_stores::Connect as _;
    ///
    /// let locks = Client::connect("postgres://app@10.0.0.1/app")?;
    /// # Ok::<(), leasehold::Error>(())
    /// ```
    fn connect(addresses: &str) -> Result<Self, Error>;
}

impl Connect for Client {
    fn connect(addresses: &str) -> Result<Self, Error> {
        crate::open(addresses).map(Self::new)
    }
}

impl Connect for blocking::Client {
    fn connect(addresses: &str) -> Result<Self, Error> {
        crate::open(addresses).map(Self::new)
    }
}
