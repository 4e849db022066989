import type postgres from "postgres";
import { sendWelcome } from "./tasks.js";

// create table handled (key text primary key, at timestamptz not null default now());
export const onPostgresJs = (sql: postgres.Sql) =>
  sendWelcome.handle(async ({ name }, ctx) => {
    await sql.begin(async (tx) => {
      const { count } =
        await tx`insert into handled (key) values (${ctx.idempotencyKey}) on conflict do nothing`;
      if (count === 0) return; // an earlier execution of this task has committed
      await tx`insert into account (name) values (${name})`;
    });
  });
