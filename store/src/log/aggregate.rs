//! The bridge between the domain's aggregates and the event-store library. No rules here.

use std::fmt;

use cqrs_es::event_sink::EventSink;
use cqrs_es::{Aggregate, DomainEvent};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use stackship_domain::{run, workspace};

/// What the log can keep: an aggregate of the domain with its decisions.
pub trait Logged: Default + Clone + Send + Sync + 'static {
    /// The aggregate type in the log.
    const TYPE: &'static str;
    /// The id of one aggregate.
    type Id: stackship_domain::ids::Id;
    /// What may be asked.
    type Command: Clone + Send + 'static;
    /// What happens.
    type Event: Clone
        + PartialEq
        + fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static;
    /// A no by the rules.
    type Refusal: std::error::Error + Send + Sync + 'static;

    /// Asks the rules.
    fn ask(&self, command: Self::Command) -> Result<Vec<Self::Event>, Self::Refusal>;
    /// Takes what happened.
    fn take(&mut self, event: &Self::Event);
    /// The name of an event in the log.
    fn name(event: &Self::Event) -> &'static str;
    /// The version of an event's shape.
    fn version() -> &'static str;
}

impl Logged for run::Run {
    const TYPE: &'static str = "run";
    type Id = stackship_domain::ids::RunId;
    type Command = run::Command;
    type Event = run::Event;
    type Refusal = run::Refusal;

    fn ask(&self, command: run::Command) -> Result<Vec<run::Event>, run::Refusal> {
        self.decide(command)
    }
    fn take(&mut self, event: &run::Event) {
        self.evolve(event);
    }
    fn name(event: &run::Event) -> &'static str {
        event.name()
    }
    fn version() -> &'static str {
        run::Event::VERSION
    }
}

impl Logged for workspace::Workspace {
    const TYPE: &'static str = "workspace";
    type Id = stackship_domain::ids::WorkspaceId;
    type Command = workspace::Command;
    type Event = workspace::Event;
    type Refusal = workspace::Refusal;

    fn ask(
        &self,
        command: workspace::Command,
    ) -> Result<Vec<workspace::Event>, workspace::Refusal> {
        self.decide(command)
    }
    fn take(&mut self, event: &workspace::Event) {
        self.evolve(event);
    }
    fn name(event: &workspace::Event) -> &'static str {
        event.name()
    }
    fn version() -> &'static str {
        workspace::Event::VERSION
    }
}

/// An aggregate as the library wants it.
#[derive(Debug, Clone, Default)]
pub(super) struct Bridge<L>(pub L);

/// An event as the library wants it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BridgedEvent<L: Logged>(pub L::Event);

impl<L: Logged> Serialize for BridgedEvent<L> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, L: Logged> Deserialize<'de> for BridgedEvent<L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        L::Event::deserialize(deserializer).map(Self)
    }
}

impl<L: Logged + fmt::Debug + PartialEq> DomainEvent for BridgedEvent<L> {
    fn event_type(&self) -> String {
        L::name(&self.0).to_owned()
    }
    fn event_version(&self) -> String {
        L::version().to_owned()
    }
}

impl<L: Logged + fmt::Debug + PartialEq> Aggregate for Bridge<L> {
    const TYPE: &'static str = L::TYPE;
    type Command = L::Command;
    type Event = BridgedEvent<L>;
    type Error = L::Refusal;
    type Services = ();

    async fn handle(
        &mut self,
        command: L::Command,
        (): &(),
        sink: &EventSink<Self>,
    ) -> Result<(), L::Refusal> {
        for event in self.0.ask(command)? {
            sink.write(BridgedEvent(event), self).await;
        }
        Ok(())
    }

    fn apply(&mut self, event: BridgedEvent<L>) {
        self.0.take(&event.0);
    }
}

/// A snapshot would store the aggregate itself. It is refused here as well as in the repository.
impl<L> Serialize for Bridge<L> {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom(
            "aggregates are kept as events only",
        ))
    }
}

impl<'de, L> Deserialize<'de> for Bridge<L> {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(serde::de::Error::custom(
            "aggregates are kept as events only",
        ))
    }
}
