import type { Status, StatusMap } from "./parser.ts";

/** Gets every result that a parser finds, also those that a later one replaces. */
export type VisitResult = (test: string, status: Status) => void;

let visitor: VisitResult | null = null;

/** The map that a parser fills. */
export function newStatusMap(): StatusMap {
  return visitor === null ? new Map() : new VisitedMap(visitor);
}

/** Calls `visit` with the results of the parsers that `parse` calls. Parsers are synchronous, so no other parser runs meanwhile. */
export function visitResults<T>(visit: VisitResult, parse: () => T): T {
  visitor = visit;
  try {
    return parse();
  } finally {
    visitor = null;
  }
}

class VisitedMap extends Map<string, Status> {
  readonly #visit: VisitResult;

  constructor(visit: VisitResult) {
    super();
    this.#visit = visit;
  }

  override set(test: string, status: Status): this {
    this.#visit(test, status);
    return super.set(test, status);
  }
}
