use futures_util::stream::poll_fn;
use http::uri::PathAndQuery;
use tokio::sync::mpsc::UnboundedReceiver;
use tonic::client::Grpc;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::failure::Failure;
use crate::proto::Unary;

/// Calls methods of the server.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    channel: Channel,
    token: Option<AsciiMetadataValue>,
}

/// The greatest answer. A queue of thousands of waiters fits.
const ANSWER_MAX: usize = 64 << 20;

impl Caller {
    pub(super) fn new(channel: Channel, token: Option<AsciiMetadataValue>) -> Self {
        Self { channel, token }
    }

    pub(super) async fn call<T: Unary>(&self, request: T) -> Result<T::Answer, Failure> {
        let mut grpc = self.grpc();
        let ready = grpc.ready().await;
        ready.map_err(|error| Failure::of(&Status::from_error(error.into())))?;
        let request = self.with_token(Request::new(request));
        let path = PathAndQuery::from_static(T::PATH);
        let answer = grpc.unary(request, path, ProstCodec::default()).await;
        let answer = answer.map_err(|status| Failure::of(&status))?;
        Ok(answer.into_inner())
    }

    /// Opens a stream. The server answers once it has read the first of the `requests`.
    pub(super) async fn stream<Q, A>(
        &self,
        path: &'static str,
        mut requests: UnboundedReceiver<Q>,
    ) -> Result<Streaming<A>, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = self.grpc();
        grpc.ready()
            .await
            .map_err(|error| Status::from_error(error.into()))?;
        let requests = poll_fn(move |context| requests.poll_recv(context));
        let request = self.with_token(Request::new(requests));
        let path = PathAndQuery::from_static(path);
        let answers = grpc.streaming(request, path, ProstCodec::default()).await?;
        Ok(answers.into_inner())
    }

    fn grpc(&self) -> Grpc<Channel> {
        Grpc::new(self.channel.clone()).max_decoding_message_size(ANSWER_MAX)
    }

    fn with_token<T>(&self, mut request: Request<T>) -> Request<T> {
        if let Some(token) = &self.token {
            request.metadata_mut().insert("token", token.clone());
        }
        request
    }
}
