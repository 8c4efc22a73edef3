/** A folder that is not a task that can be used, and why. */
export class TaskError extends Error {
  override readonly name = "TaskError";
  readonly folder: string;

  constructor(folder: string, reason: string, options?: ErrorOptions) {
    super(`${folder}: ${reason}`, options);
    this.folder = folder;
  }
}
