/**
 * Where a task goes. This is a separate file so that the library's types do not depend on the package that the spans
 * use.
 */
export interface Destination {
  readonly type: string;
  readonly queue: string;
}
