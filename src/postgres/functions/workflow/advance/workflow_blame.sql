-- Why items of a fail-fast each are cancelled for the sake of another. By this text one knows them from the one that
-- was the cause.
create or replace function sluice.workflow_blame() returns text language sql immutable as $$ select 'another item failed or was cancelled' $$;
