use leasehold::{Error, ErrorKind};

/// A kind of store, whether or not this build has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreKind {
    File,
    Redis,
    Postgres,
    Etcd,
    ZooKeeper,
}

impl StoreKind {
    /// Returns the kind whose scheme `address` has.
    pub(crate) fn of(address: &str) -> Result<Self, Error> {
        let scheme = match address.split_once(':') {
            Some(("file", _)) => return Ok(Self::File),
            _ => address.split_once("://").map(|(scheme, _)| scheme),
        };
        let rule = match scheme {
            Some("redis" | "rediss" | "valkey" | "valkeys" | "unix") => return Ok(Self::Redis),
            Some("postgres" | "postgresql") => return Ok(Self::Postgres),
            Some("etcd" | "etcds") => return Ok(Self::Etcd),
            Some("zk" | "zks" | "zookeeper") => return Ok(Self::ZooKeeper),
            Some(_) => "unknown scheme",
            None => "no scheme",
        };
        let expected = "redis://, rediss:// (TLS), unix:// (a socket), postgres://, etcd://, zk://, or file:///folder";
        Err(Error::invalid_url(address, rule, expected))
    }

    /// Whether one address of this kind names several servers, with commas between them.
    pub(crate) fn has_several_hosts(self) -> bool {
        matches!(self, Self::Postgres | Self::ZooKeeper)
    }

    /// Returns the error for an address of this kind in a build without its store.
    pub(crate) fn missing(self, address: &str) -> Error {
        let scheme = address.split(':').next().unwrap_or_default();
        let feature = match self {
            Self::File => "file",
            Self::Redis => "redis",
            Self::Postgres => "postgres",
            Self::Etcd => "etcd",
            Self::ZooKeeper => "zookeeper",
        };
        let text = format!(
            "this build has no store for {scheme}: addresses; build it with the feature `{feature}`"
        );
        Error::new(ErrorKind::Unsupported, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_has_its_kind() {
        for (address, kind) in [
            ("file:/a", StoreKind::File),
            ("file:///a?unsafe_fs=1", StoreKind::File),
            ("rediss://u:p@a", StoreKind::Redis),
            ("unix:///run/a.sock", StoreKind::Redis),
            ("postgresql://a,b/app", StoreKind::Postgres),
            ("etcds://a,b", StoreKind::Etcd),
            ("zk://a,b/locks", StoreKind::ZooKeeper),
        ] {
            assert_eq!(StoreKind::of(address).unwrap(), kind, "{address}");
        }
    }

    #[test]
    fn unknown_addresses_show_no_password() {
        for (address, shown) in [
            ("mysql://u:hunter2@a", r#""mysql://…@a": unknown scheme;"#),
            ("mysql://u:hunter2", r#""mysql://u:…": unknown scheme;"#),
            ("u:hunter2@redis://a", r#""…@redis:…": unknown scheme;"#),
            ("u:hunter2@a:6379", r#""…@a:6379": no scheme"#),
            ("a:6379?password=hunter2", r#""a:6379": no scheme"#),
        ] {
            let text = StoreKind::of(address).unwrap_err().to_string();
            assert!(text.starts_with(&format!("store URL {shown}")), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn missing_store_names_scheme_and_feature() {
        let error = StoreKind::ZooKeeper.missing("zks://a,b");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(
            error.to_string(),
            "this build has no store for zks: addresses; build it with the feature `zookeeper`"
        );
    }
}
