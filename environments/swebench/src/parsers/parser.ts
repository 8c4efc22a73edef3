/** What a test did: PASSED, FAILED, SKIPPED, ERROR, XFAIL, or another first word that a parser for pytest found, such as `ERROR:`. */
export type Status = string;

/** Tests in the order of their first occurrence in the log; the last status wins. */
export type StatusMap = Map<string, Status>;

/** What parsers know about the instance besides its log. */
export interface ParserContext {
  readonly instanceId: string;
  readonly version: unknown;
}

/** Reads the results of tests from a log. Throws a `PyError` where the reference raises. */
export type LogParser = (log: string, context: ParserContext) => StatusMap;

export const STATUSES = ["FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL"] as const;
