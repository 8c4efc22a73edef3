/** One thing that this machine or a cluster can do or not. */
export interface Check {
  readonly name: string;
  /** What it is used for. */
  readonly use: string;
  readonly ok: boolean;
  /** What was found, or why it does not work. */
  readonly detail: string;
  /** The command or step that gets it; null if it works or cannot be installed. */
  readonly get: string | null;
}
