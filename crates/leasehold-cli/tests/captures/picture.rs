use crate::screen::Screen;

/// Terminals below each other, with a description for readers who do not see them.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) title: &'static str,
    pub(crate) description: &'static str,
    pub(crate) panes: Vec<Pane>,
}

/// One terminal at one moment.
#[derive(Debug)]
pub(crate) struct Pane {
    pub(crate) caption: &'static str,
    pub(crate) screen: Screen,
}
