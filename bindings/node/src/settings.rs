//! What JavaScript asks for, as requests of the bridge. Times are in seconds.

use leasehold::Error;
use leasehold_bridge::{Breaking, Campaign, OnceRequest, Options, Wait, span};
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
    pub(crate) fn once(self, name: String, is_try: bool) -> Result<OnceRequest, Error> {
        Ok(OnceRequest {
            options: self.options(is_try)?,
            name,
            payload: self.payload.map(Vec::from).unwrap_or_default(),
            retention: self.retention.map(span).transpose()?,
        })
    }

    pub(crate) fn campaign(self, name: String) -> Result<Campaign, Error> {
        Ok(Campaign {
            options: self.options(false)?,
            name,
            value: self.value.unwrap_or_default(),
            poll_interval: self.poll_interval.map(span).transpose()?,
        })
    }

    pub(crate) fn options(&self, is_try: bool) -> Result<Options, Error> {
        Ok(Options {
            ttl: self.ttl.map(span).transpose()?,
            wait: match is_try {
                true => Wait::Try,
                false => Wait::of_seconds(self.wait)?,
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
