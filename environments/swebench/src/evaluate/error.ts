/** The patch could not be applied, or the tests took too long. The instance has no report and counts as an error. */
export class EvaluationError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "EvaluationError";
  }
}
