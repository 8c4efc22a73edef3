import type { Answer } from "../platform.ts";

/** Something that was asked for with a key: an instance, or forks. */
export interface Request {
  readonly key: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** What the first answer said, once there was one. */
  answer: string | null;
  /** The instances in it; empty for an error. */
  readonly known: Known[];
  /** What the instances' counters may stand at when they begin. */
  readonly begin: () => Range;
  /** How often it was asked again after all was over. */
  checks: number;
}

export interface Range {
  readonly least: number;
  readonly most: number;
}

/** An instance as its user knows it. */
export interface Known {
  readonly id: string;
  readonly isShared: boolean;
  /** Somebody was told that it runs. */
  hasRun: boolean;
  /** Increments that were answered, and all that were sent. */
  acknowledged: number;
  sent: number;
  isDeleteSent: boolean;
  isDeleted: boolean;
  hasFailed: boolean;
}

/** Everything that the platform's user has asked for and was told, across all lives of the server. */
export class World {
  readonly requests: Request[] = [];
  /** For people who want to know what a run was made of. */
  readonly counts = { kills: 0, operations: 0, brokenOff: 0, instances: 0, failedStarts: 0 };
  readonly #byId = new Map<string, Known>();

  get known(): readonly Known[] {
    return [...this.#byId.values()];
  }

  /** Those that may be used: they were seen running and nobody wanted them gone. */
  get usable(): readonly Known[] {
    return this.known.filter((one) => one.hasRun && !one.isDeleteSent);
  }

  find(id: string): Known | undefined {
    return this.#byId.get(id);
  }

  /** Takes note of an answer; the same request must be answered the same for ever. */
  note(request: Request, answer: Answer): void {
    const records: InstanceAnswer[] = answer.success ? [answer.data].flat() : [];
    const text = answer.success ? JSON.stringify(records.map(identity)) : `${answer.status} ${answer.error?.code}`;
    if (request.answer === null) {
      request.answer = text;
      this.counts.instances += records.length;
      if (!answer.success) this.counts.failedStarts++;
      for (const record of records) request.known.push(this.#add(record, request.begin()));
    } else if (request.answer !== text) {
      throw new Error(`${request.key} was answered ${request.answer}, and now ${text} (${answer.message})`);
    }
    for (const record of records) {
      const known = this.#byId.get(record.id);
      if (known !== undefined && record.status === "Running") known.hasRun = true;
    }
  }

  /** Forgets what has ended for good and was looked at once more since: a long test must not remember more and more. */
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
