//! People, and the clock that decides in their place.

use stackship_domain::run::Status;

use super::Decision;
use crate::model::asks::{RunAsk, WorkspaceAsk};
use crate::model::rules::Rules;
use crate::model::system::System;
use crate::model::world::{Who, World};

impl<R: Rules> System<R> {
    pub(super) fn decide(&self, world: &mut World, who: Who, decision: Decision) -> Option<()> {
        let ask = match decision {
            Decision::Override => RunAsk::Override,
            Decision::Approve { of_what_is_asked } => RunAsk::Approve { of_what_is_asked },
            Decision::Discard => RunAsk::Discard,
            Decision::Cancel => RunAsk::Cancel,
            Decision::Lapse => RunAsk::Lapse,
            Decision::Supersede => RunAsk::Supersede,
            Decision::Adopt => return self.adopt(world, who),
            // An operator who sees the run's state published cannot say that nothing changed.
            Decision::DeclareNoChange => {
                let published = self.workspace(world.workspace).head == Some(who);
                (!published).then_some(RunAsk::DeclareNoChange)?
            }
        };
        self.ask(world, who, ask)
    }

    /// First the workspace takes the emergency state, then the run is resolved. An operator who finds
    /// the first done goes on with the second.
    fn adopt(&self, world: &mut World, who: Who) -> Option<()> {
        let as_read = world.runs[who.index()];
        self.run(as_read)
            .is(Status::RecoveryRequired)
            .then_some(())?;
        let resolved = self.ask_run(as_read, RunAsk::Adopt { who })?;
        let answer = self.ask_workspace(world.workspace, WorkspaceAsk::Publish { who, as_read })?;
        if answer.happened {
            Self::commit_publication(world, who, answer);
        } else {
            self.commit_run(world, who, resolved);
        }
        Some(())
    }
}
