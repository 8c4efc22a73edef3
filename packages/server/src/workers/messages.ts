import type { Caller } from "../access/access.ts";
import type { ServerConfig } from "../config/config.ts";
import type { RewardedRow } from "../instances/reward-phases.ts";
import type { InstanceRow } from "../instances/row.ts";
import type { MetricValues } from "../operations/call-metrics.ts";
import type { Indexes, ListOptions } from "../stores/store.ts";

// What a server and its workers tell each other, over the channel between parent and child process. Both run the same code, so
// messages are not validated. A channel keeps the order of its messages.

/** Everything that a worker needs to serve the data port. */
export interface WorkerSettings {
  readonly config: ServerConfig;
  /** All workers listen on it. */
  readonly port: number;
  readonly version: string;
  readonly isAccessOn: boolean;
  /** How long a worker may use an instance's row that it has in memory. */
  readonly maxRowAgeMs: number;
  /** The socket on which the server serves what workers cannot. */
  readonly serverSocket: string;
}

/** A question of a worker. The fast path asks none: it uses what earlier answers and the server's messages have left in memory. */
export type Question =
  | { readonly what: "get"; readonly kind: string; readonly key: string }
  | { readonly what: "list"; readonly kind: string; readonly options: ListOptions }
  | {
      readonly what: "swap";
      readonly kind: string;
      readonly key: string;
      readonly rev: number;
      readonly value: unknown;
      readonly indexes: Indexes;
    }
  /** The caller for whom the server acts by this token. */
  | { readonly what: "delegate"; readonly token: string }
  /** Begins the computation of a reward; the answer is the number of the phase. */
  | { readonly what: "enter reward"; readonly row: RewardedRow }
  /** Answered when rewards that have ended have left their policy. */
  | { readonly what: "left reward"; readonly row: RewardedRow };

/** A delegate's caller; null if the token is unknown. */
export type DelegateAnswer = Caller | null;

export type FromWorker =
  | { readonly type: "listening" }
  | { readonly type: "failed"; readonly error: SentError }
  | { readonly type: "question"; readonly id: number; readonly question: Question }
  /** Calls to an instance have begun, and later: there has been none for a moment. */
  | { readonly type: "used"; readonly row: InstanceRow }
  | { readonly type: "unused"; readonly instanceId: string }
  | { readonly type: "left reward"; readonly phase: number }
  /** How many connections are open, and how many limits it had applied when it counted them. */
  | { readonly type: "connections"; readonly open: number; readonly applied: number }
  | { readonly type: "metrics"; readonly calls: MetricValues; readonly process?: MetricValues }
  | { readonly type: "confirmed"; readonly id: number }
  /** There is nothing left to do; the server ends it. */
  | { readonly type: "finished" };

export type ToWorker =
  | { readonly type: "open"; readonly settings: WorkerSettings }
  | { readonly type: "answer"; readonly id: number; readonly value: unknown }
  | { readonly type: "error"; readonly id: number; readonly error: SentError }
  /** A row that the worker has read was changed. */
  | { readonly type: "row"; readonly row: InstanceRow }
  | { readonly type: "token revoked" }
  | { readonly type: "delegate ended"; readonly token: string }
  | { readonly type: "sandbox ended"; readonly sandboxId: string }
  /** How many connections it may have open; none before the first of these messages. */
  | { readonly type: "connections"; readonly limit: number }
  | { readonly type: "measure" }
  /** Answered with `confirmed` when all earlier messages have taken effect. */
  | { readonly type: "confirm"; readonly id: number }
  /** Refuse new calls. */
  | { readonly type: "retire connections" }
  | { readonly type: "drain" }
  /** Wait for calls in flight, then exit. */
  | { readonly type: "finish"; readonly graceMs: number };

/** An error on the channel, which keeps the code but not the class. */
export interface SentError {
  readonly code: string | null;
  readonly message: string;
  /** The code of an error of the operating system, such as EADDRINUSE. */
  readonly systemCode?: string;
}
