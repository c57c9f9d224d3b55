use std::future::Future;
use std::pin::Pin;

/// A boxed future, which the methods of [`Store`](crate::store::Store) return so that a store can be `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
