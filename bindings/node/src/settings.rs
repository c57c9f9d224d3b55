//! What JavaScript asks for, as requests of the bridge. Times are in seconds.

use leasehold::Error;
use leasehold_bridge::{Breaking, Campaign, LockRequest, OnceRequest, Options, Target, Wait, span};
use napi::bindgen_prelude::Buffer;
use napi_derive::napi;

/// The settings of all requests. Each request reads its own.
#[napi(object, object_to_js = false)]
#[derive(Default)]
#[expect(
    missing_debug_implementations,
    reason = "a buffer of JavaScript has none"
)]
pub struct Settings {
    /// The names of the locks; one, unless it is a set.
    pub names: Vec<String>,
    pub is_set: Option<bool>,
    pub permits: Option<u32>,
    pub is_try: Option<bool>,
    pub ttl: Option<f64>,
    pub wait: Option<f64>,
    pub max_hold: Option<f64>,
    pub lock_delay: Option<f64>,
    pub shared: Option<bool>,
    pub barging: Option<bool>,
    pub payload: Option<Buffer>,
    pub retention: Option<f64>,
    pub value: Option<String>,
    pub poll_interval: Option<f64>,
}

impl Settings {
    pub(crate) fn lock(mut self) -> Result<LockRequest, Error> {
        let options = self.options()?;
        let target = match self.permits {
            _ if self.is_set == Some(true) => Target::Set(self.names),
            Some(permits) => Target::Permit(self.name(), permits),
            None => Target::Lock(self.name()),
        };
        Ok(LockRequest { target, options })
    }

    pub(crate) fn once(mut self) -> Result<OnceRequest, Error> {
        Ok(OnceRequest {
            options: self.options()?,
            name: self.name(),
            payload: self.payload.map(Vec::from).unwrap_or_default(),
            retention: self.retention.map(span).transpose()?,
        })
    }

    pub(crate) fn campaign(mut self) -> Result<Campaign, Error> {
        Ok(Campaign {
            options: self.options()?,
            name: self.name(),
            value: self.value.unwrap_or_default(),
            poll_interval: self.poll_interval.map(span).transpose()?,
        })
    }

    fn name(&mut self) -> String {
        self.names.pop().unwrap_or_default()
    }

    fn options(&self) -> Result<Options, Error> {
        Ok(Options {
            ttl: self.ttl.map(span).transpose()?,
            wait: match self.is_try {
                Some(true) => Wait::Try,
                _ => Wait::of_seconds(self.wait)?,
            },
            max_hold: self.max_hold.map(span).transpose()?,
            lock_delay: self.lock_delay.map(span).transpose()?,
            shared: self.shared.unwrap_or_default(),
            barging: self.barging.unwrap_or_default(),
        })
    }
}

/// Which lock to break, and how.
#[napi(object, object_to_js = false)]
#[derive(Debug)]
pub struct BreakSettings {
    pub name: String,
    pub fence: f64,
    pub at_once: bool,
    pub user: Option<String>,
    pub reason: Option<String>,
}

impl From<BreakSettings> for Breaking {
    #[expect(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "JavaScript has checked the fence"
    )]
    fn from(settings: BreakSettings) -> Self {
        Self {
            name: settings.name,
            fence: settings.fence as u64,
            at_once: settings.at_once,
            user: settings.user,
            reason: settings.reason,
        }
    }
}
