/** Where a task goes. In a file of its own: our types are to need no package that comes with the spans. */
export interface Destination {
  readonly type: string;
  readonly queue: string;
}
