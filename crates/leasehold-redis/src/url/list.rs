use leasehold::{Error, ErrorKind};

use super::RedisUrl;

/// The greatest number of members.
pub(crate) const MEMBERS_MAX: usize = 31;

/// Reads the URLs of the members of one store.
///
/// # Errors
///
/// If a URL or the list of them breaks a rule.
pub fn parse_all(urls: &[String]) -> Result<Vec<RedisUrl>, Error> {
    let urls = urls.iter().map(|url| RedisUrl::parse(url));
    let urls = urls.collect::<Result<Vec<_>, _>>()?;
    check(&urls)?;
    Ok(urls)
}

fn check(urls: &[RedisUrl]) -> Result<(), Error> {
    let refuse = |rule: String| Err(Error::new(ErrorKind::InvalidInput, rule));
    if urls.is_empty() {
        return refuse("no member; give the URL of at least one server".into());
    }
    if urls.len() > MEMBERS_MAX {
        return refuse(format!("more than {MEMBERS_MAX} members"));
    }
    if urls.len() > 1
        && let Some(url) = urls.iter().find(|url| url.accepts_eviction)
    {
        return refuse(format!(
            "{url}: evicting=accept is for a single server; a member of a quorum may not evict locks"
        ));
    }
    for (at, url) in urls.iter().enumerate() {
        let is_same =
            |other: &&RedisUrl| other.id == url.id || other.address.same_server(&url.address);
        if let Some(earlier) = urls[..at].iter().find(is_same) {
            return refuse(format!(
                "{url} is given twice (also as {earlier}); list each server and each id once"
            ));
        }
    }
    Ok(())
}
