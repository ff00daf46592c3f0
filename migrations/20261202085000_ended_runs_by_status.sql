-- A list of the runs that ended in one way. Without these, the failed runs among a million others were
-- looked for one by one. Partial like their counterpart: a row comes in once, when its run ends, and no
-- change of a status before that touches them.
create index on view.run_inventory (organization_id, status, created_at desc, run_id desc) where ended_at is not null;
create index on view.run_inventory (organization_id, workspace_id, status, created_at desc, run_id desc)
    where ended_at is not null;
