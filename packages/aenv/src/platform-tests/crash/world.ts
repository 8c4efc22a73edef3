import type { Answer } from "../platform.ts";

/** A request with an idempotency key: for an instance, or for forks. */
export interface Request {
  readonly key: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** The first response; null until there is one. */
  answer: string | null;
  /** The instances in it; empty for an error. */
  readonly known: Known[];
  /** The possible first values of the instances' counters. */
  readonly begin: () => Range;
  /** How often it was repeated after its instances had ended. */
  checks: number;
}

export interface Range {
  readonly least: number;
  readonly most: number;
}

/** What a client knows about an instance. */
export interface Known {
  readonly id: string;
  readonly isShared: boolean;
  /** A response reported it as running. */
  hasRun: boolean;
  /** Increments with a response, and all increments sent. */
  acknowledged: number;
  sent: number;
  isDeleteSent: boolean;
  isDeleted: boolean;
  hasFailed: boolean;
}

/** All requests and responses of the test, across all restarts of the server. */
export class World {
  readonly requests: Request[] = [];
  /** Statistics of a run. */
  readonly counts = { kills: 0, operations: 0, brokenOff: 0, instances: 0, failedStarts: 0 };
  readonly #byId = new Map<string, Known>();

  get known(): readonly Known[] {
    return [...this.#byId.values()];
  }

  /** Instances that can be called: reported as running, and not deleted. */
  get usable(): readonly Known[] {
    return this.known.filter((one) => one.hasRun && !one.isDeleteSent);
  }

  find(id: string): Known | undefined {
    return this.#byId.get(id);
  }

  /** Records a response; the same request must always get the same one. */
  note(request: Request, answer: Answer): void {
    const records: InstanceAnswer[] = answer.success ? [answer.data].flat() : [];
    const text = answer.success ? JSON.stringify(records.map(identity)) : `${answer.status} ${answer.error?.code}`;
    if (request.answer === null) {
      request.answer = text;
      this.counts.instances += records.length;
      if (!answer.success) this.counts.failedStarts++;
      for (const record of records) request.known.push(this.#add(record, request.begin()));
    } else if (request.answer !== text) {
      throw new Error(`${request.key} got ${request.answer} first, and now ${text} (${answer.message})`);
    }
    for (const record of records) {
      const known = this.#byId.get(record.id);
      if (known !== undefined && record.status === "Running") known.hasRun = true;
    }
  }

  /** Forgets ended instances that were checked once more since: the memory of a long test must not grow. */
  forget(): void {
    for (const request of [...this.requests]) {
      if (request.answer === null || !request.known.every((one) => one.isDeleted || one.hasFailed) || request.checks++ === 0) continue;
      this.requests.splice(this.requests.indexOf(request), 1);
      for (const { id } of request.known) this.#byId.delete(id);
    }
  }

  #add(record: InstanceAnswer, { least, most }: Range): Known {
    if (this.#byId.has(record.id)) throw new Error(`${record.id} is the answer to two requests`);
    const known: Known = {
      id: record.id,
      isShared: record.environment.includes("-shared@"),
      hasRun: false,
      acknowledged: least,
      sent: most,
      isDeleteSent: false,
      isDeleted: false,
      hasFailed: false,
    };
    this.#byId.set(record.id, known);
    return known;
  }
}

interface InstanceAnswer {
  readonly id: string;
  readonly status: string;
  readonly environment: string;
  readonly created_at: string;
  readonly seed: number;
}

function identity({ id, environment, created_at, seed }: InstanceAnswer): unknown {
  return [id, environment, created_at, seed];
}
