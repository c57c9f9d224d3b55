//! What an operator should know about a server.

use std::sync::Arc;

use leasehold::Error;
use leasehold::store::background;

use crate::connect::Place;

/// What a server says about itself, its database, and this user.
#[derive(Clone, Debug)]
pub struct Examination {}

/// A right that the user lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight {}

pub(crate) async fn examine(place: &Arc<Place>) -> Result<Examination, Error> {
    let (client, driver) = place.connect().await?;
    background::spawn(driver.run());
    drop(client);
    Ok(Examination {})
}
