/**
 * One static statement: its text for the default schema name, the types of its parameters and the names of its columns.
 * The test run parses and describes every statement on a real server.
 */
export interface AnyStatement {
  readonly name: string;
  readonly text: string;
  readonly params: readonly string[];
  readonly columns: readonly string[];
}

/** A statement whose rows have this type. */
export interface Statement<Row> extends AnyStatement {
  readonly columns: readonly (keyof Row & string)[];
}

const registry: AnyStatement[] = [];

/** Registers a statement, so that the test run checks it against the schema. */
export function statement<Row>(s: Statement<Row>): Statement<Row> {
  registry.push(s);
  return s;
}

/** Every statement of the modules loaded so far. */
export function allStatements(): readonly AnyStatement[] {
  return registry;
}

/** The text for a schema with another name. The name has been checked; quoting allows reserved words. */
export function inSchema(text: string, schema: string): string {
  return text.replace(/\bsluice\./g, `"${schema}".`).replace(/'sluice'/g, `'${schema}'`);
}
