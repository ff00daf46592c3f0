-- Which token a token was made with. Revoking a token takes back what was made with it, so that whoever
-- stole one cannot leave another behind. Tokens from before this have no minter that is known.

alter table record.tokens
    add column minted_by text,
    add constraint token_in_organization unique (organization_id, token_id),
    add constraint minted_within_organization foreign key (organization_id, minted_by)
        references record.tokens (organization_id, token_id),
    add constraint not_minted_by_itself check (minted_by <> token_id);
create index tokens_by_minter on record.tokens (organization_id, minted_by) where minted_by is not null;
