-- Whether a result was too large to be stored, and this is the note that stands for it. The blank tells: no
-- handler's own result is written with one there, whatever is in it (src/core/storable.ts), and json keeps its text.
create or replace function sluice.workflow_cut(p_outcome json) returns boolean language sql immutable as
$$ select p_outcome::text like '{ "truncated":true,"bytes":%' $$;
