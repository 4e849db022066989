import pg from "pg";

/** How a database is filled. Of one name it is done once; after that the result is copied. */
export interface Recipe {
  readonly name: string;
  fill(url: string): Promise<void>;
}

/** A database of one measurement's own. */
export interface Copy {
  readonly url: string;
  query(text: string): Promise<Record<string, unknown>[]>;
  drop(): Promise<void>;
}

const PREFIX = `sluice_bench_${process.pid}`;

/**
 * Databases for measurements. Each begins from the same state: filled, vacuumed, analysed and
 * checkpointed, so that neither side pays for what the other or the filling left to autovacuum.
 */
export class Databases {
  readonly version: string;
  readonly #serverUrl: string;
  readonly #admin: pg.Client;
  readonly #made = new Map<string, Promise<string>>();
  #next = 0;

  private constructor(serverUrl: string, admin: pg.Client, version: string) {
    this.#serverUrl = serverUrl;
    this.#admin = admin;
    this.version = version;
  }

  static async open(serverUrl: string): Promise<Databases> {
    const admin = await connect(serverUrl);
    const { rows } = await admin.query<{ server_version: string }>("show server_version");
    return new Databases(serverUrl, admin, rows[0]!.server_version);
  }

  async copyOf(recipe: Recipe): Promise<Copy> {
    let made = this.#made.get(recipe.name);
    if (made === undefined) this.#made.set(recipe.name, (made = this.#make(recipe)));
    const template = await made;
    const name = this.#name();
    await this.#admin.query(`create database ${name} template ${template} ${this.#byFiles()}`);
    await this.#admin.query("checkpoint");
    const client = await connect(this.#urlOf(name));
    return {
      url: this.#urlOf(name),
      query: async (text) => (await client.query(text)).rows as Record<string, unknown>[],
      drop: async () => {
        await client.end();
        await this.#admin.query(`drop database ${name} with (force)`);
      },
    };
  }

  /** Drops what was filled, and every copy: nobody needs it again. */
  async forget(): Promise<void> {
    this.#made.clear();
    await this.#dropAll();
  }

  async close(): Promise<void> {
    await this.#dropAll();
    await this.#admin.end();
  }

  async #dropAll(): Promise<void> {
    const { rows } = await this.#admin.query<{ datname: string }>(
      "select datname from pg_database where starts_with(datname, $1)",
      [`${PREFIX}_`],
    );
    for (const { datname } of rows) await this.#admin.query(`drop database ${datname} with (force)`);
  }

  async #make(recipe: Recipe): Promise<string> {
    const name = this.#name();
    await this.#admin.query(`create database ${name}`);
    await recipe.fill(this.#urlOf(name));
    const client = await connect(this.#urlOf(name));
    await client.query("vacuum (analyze)");
    await client.end();
    return name;
  }

  #name(): string {
    return `${PREFIX}_${this.#next++}`;
  }

  /** From 15 on PostgreSQL would else write the whole copy to the WAL: slow, and it fills buffers. */
  #byFiles(): string {
    return Number.parseInt(this.version, 10) >= 15 ? "strategy file_copy" : "";
  }

  #urlOf(name: string): string {
    const url = new URL(this.#serverUrl);
    url.pathname = `/${name}`;
    return url.href;
  }
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  // A connection that breaks is told by the next query; without a listener it would end the process.
  client.on("error", () => {});
  await client.connect();
  return client;
}
