import type pg from "pg";

/** What the server says of a statement without running it. */
export interface Description {
  readonly params: readonly string[];
  readonly columns: readonly string[];
}

interface Wire {
  parse(statement: { name: string; text: string; types: number[] }): void;
  describe(what: { type: "S"; name: string }): void;
  sync(): void;
  once(event: "parameterDescription", hear: (m: { dataTypeIDs: number[] }) => void): void;
  removeAllListeners(event: "parameterDescription"): void;
}

/** Parse and Describe in place of a query: the driver calls these as the answers come in. */
class Question {
  #params: number[] = [];
  #columns: string[] = [];
  #wire: Wire | undefined;

  constructor(
    readonly text: string,
    readonly answer: (params: number[], columns: string[]) => void,
    readonly fail: (error: Error) => void,
  ) {}

  submit(wire: Wire): void {
    this.#wire = wire;
    wire.once("parameterDescription", (m) => (this.#params = m.dataTypeIDs));
    wire.parse({ name: "", text: this.text, types: [] });
    wire.describe({ type: "S", name: "" });
    wire.sync();
  }

  handleRowDescription(m: { fields: { name: string }[] }): void {
    this.#columns = m.fields.map((f) => f.name);
  }

  handleError(error: Error): void {
    this.#wire?.removeAllListeners("parameterDescription");
    this.fail(error);
  }

  handleReadyForQuery(): void {
    this.answer(this.#params, this.#columns);
  }
}

/** Throws what the server throws at a statement that does not fit the schema. */
export async function describeStatement(client: pg.Client, text: string): Promise<Description> {
  const [oids, columns] = await new Promise<[number[], string[]]>((resolve, reject) => {
    client.query(new Question(text, (...found) => resolve(found), reject) as never);
  });
  const { rows } = await client.query<{ typname: string }>(
    "select t.typname from unnest($1::oid[]) with ordinality u(oid, n) join pg_type t on t.oid = u.oid order by u.n",
    [oids],
  );
  return { params: rows.map((r) => r.typname), columns };
}
