-- What an entry of the audit is about, so that one run's or one workspace's history is found without
-- reading everybody's. Only a help for searching: the chain does not cover it, and a rebuild makes it
-- anew from the log.

alter table view.audit_entries add column run_id text, add column workspace_id text;

-- The entries that are there already; the projector knows the rest when it writes them.
alter table view.audit_entries disable trigger audit_append_only;
update view.audit_entries as entry
    set run_id = about.run_id,
        workspace_id = coalesce(about.workspace_id,
            (select run.workspace_id from view.run_inventory as run where run.run_id = about.run_id))
    from (
        select aggregate_type, aggregate_id, sequence,
            case aggregate_type when 'run' then aggregate_id else payload ->> 'run' end as run_id,
            case aggregate_type
                when 'workspace' then aggregate_id
                when 'fact' then coalesce(payload ->> 'workspace', payload #>> '{scope,workspace}')
            end as workspace_id
        from log.events
    ) as about
    where (about.aggregate_type, about.aggregate_id, about.sequence)
        = (entry.aggregate_type, entry.aggregate_id, entry.sequence);
alter table view.audit_entries enable trigger audit_append_only;

-- One index a filter, each in the order of the list, so that every page of every filter is one range
-- of one index, however old it is.
create index on view.audit_entries (organization_id, recorded_at desc, number desc);
create index on view.audit_entries (organization_id, actor, recorded_at desc, number desc);
create index on view.audit_entries (organization_id, event_type, recorded_at desc, number desc);
create index on view.audit_entries (organization_id, run_id, recorded_at desc, number desc)
    where run_id is not null;
create index on view.audit_entries (organization_id, workspace_id, recorded_at desc, number desc)
    where workspace_id is not null;
