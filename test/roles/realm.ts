import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import pg from "pg";
import { Sluice, type ConnectOptions } from "../../src/index.js";
import { freshDatabase } from "../support/database.js";

export type Role = "owner" | "producer" | "worker" | "reader";
export const roles: readonly Role[] = ["owner", "producer", "worker", "reader"];

/** A database with the documented roles and a login for each of them. */
export interface Realm {
  readonly schema: string;
  /** The database address for a login with this role. */
  url(role: Role | "stranger"): string;
  /** A Sluice of this role, closed with the realm. Migrates only if the options say so. */
  connect(role: Role | "stranger", options?: ConnectOptions): Promise<Sluice>;
  /** The rows of a query under this role. "sluice" stands for the schema. */
  sql(role: Role, text: string, params?: unknown[]): Promise<Record<string, unknown>[]>;
  /** Runs docs/operate/roles.sql, as an administrator does. */
  grant(): Promise<void>;
  close(): Promise<void>;
}

const file = new URL("../../docs/operate/roles.sql", import.meta.url);

/** Follows the documentation: creates the roles, migrates as the owner, then grants the rights. */
export async function openRealm(schema: string): Promise<Realm> {
  const database = await freshDatabase();
  const admin = await connected(database.url);
  // Roles belong to the whole server: other tests may be creating theirs.
  const prefix = `sluice_test_${randomBytes(4).toString("hex")}`;
  const password = randomBytes(8).toString("hex");
  const open: Sluice[] = [];
  const clients = new Map<Role, pg.Client>();
  const grant = async (): Promise<void> => {
    await admin.query(`set sluice.schema = '${schema}'; set sluice.roles = '${prefix}'`);
    await admin.query(readFileSync(file, "utf8"));
  };
  const url = (role: Role | "stranger"): string => {
    const address = new URL(database.url);
    address.username = `${prefix}_${role}_login`;
    address.password = password;
    return address.href;
  };
  const connect: Realm["connect"] = async (role, options = {}) => {
    const sluice = await Sluice.connect({ url: url(role), schema, migrate: false, ...options });
    open.push(sluice);
    return sluice;
  };
  await grant();
  await admin.query(`create role ${prefix}_stranger_login login password '${password}'`);
  for (const role of roles)
    await admin.query(`create role ${prefix}_${role}_login login password '${password}' in role ${prefix}_${role}`);
  await connect("owner", { migrate: true });
  await grant();
  for (const role of roles) clients.set(role, await connected(url(role)));
  return {
    schema,
    url,
    connect,
    grant,
    sql: async (role, text, params) =>
      (await clients.get(role)!.query(text.replaceAll("sluice.", `"${schema}".`), params)).rows,
    close: async () => {
      await Promise.all(open.map((sluice) => sluice.close()));
      await Promise.all([...clients.values()].map((client) => client.end()));
      for (const role of roles) await admin.query(`drop owned by ${prefix}_${role}_login, ${prefix}_${role} cascade`);
      await admin.query(`drop owned by ${prefix}_stranger_login`);
      for (const role of [...roles, "stranger"])
        await admin.query(`drop role if exists ${prefix}_${role}_login, ${prefix}_${role}`);
      await admin.end();
      await database.drop();
    },
  };
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  return client;
}
