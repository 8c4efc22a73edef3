import { type ForfeitReason, forfeitReasons, type Json, roleName, type Unscored } from "@aenv/contract";
import * as z from "zod";
import type { CompiledRoles } from "../compile/roles.ts";

/** A role that has given up. */
const departure = z.object({
  reason: z.enum(forfeitReasons),
  /** Whether the environment has decided what that means for the state. */
  forfeited: z.boolean(),
});
type Departure = z.infer<typeof departure>;

/** What has happened in the turns of an episode and is not in its state, as snapshots have it. */
export const turnRecord = z.object({
  /** Actions that wait for those of other roles. */
  waiting: z.record(roleName, z.unknown() as z.ZodType<Json>),
  invalid_moves: z.record(roleName, z.number().int().nonnegative()),
  out: z.record(roleName, departure),
  /** What the turns that have begun have taken so far. */
  spent_ms: z.record(roleName, z.number().nonnegative()),
  has_started: z.boolean(),
});
export type TurnRecord = z.infer<typeof turnRecord>;

/** The turns of an episode: which roles may act, which wait for others, and how long each turn has taken. */
export class TurnOrder {
  readonly #roles: CompiledRoles;
  readonly #now: () => number;
  readonly waiting: Map<string, Json>;
  readonly #invalidMoves: Map<string, number>;
  readonly #out: Map<string, Departure>;
  /** Milliseconds of a turn before it began here, in the instance that a snapshot was taken of. */
  readonly #spentBefore: Map<string, number>;
  readonly #since = new Map<string, number>();
  #hasStarted: boolean;

  constructor(roles: CompiledRoles, record: TurnRecord | null, now: () => number) {
    this.#roles = roles;
    this.#now = now;
    this.waiting = new Map(Object.entries(record?.waiting ?? {}));
    this.#invalidMoves = new Map(Object.entries(record?.invalid_moves ?? {}));
    this.#out = new Map(Object.entries(record?.out ?? {}));
    this.#spentBefore = new Map(Object.entries(record?.spent_ms ?? {}));
    this.#hasStarted = record?.has_started ?? false;
  }

  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  /** Turns take time from the first call of any role on. True the first time. */
  start(): boolean {
    const isFirst = !this.#hasStarted;
    this.#hasStarted = true;
    return isFirst;
  }

  departureOf(role: string): Departure | null {
    return this.#out.get(role) ?? null;
  }

  leave(role: string, reason: ForfeitReason): void {
    this.waiting.delete(role);
    this.#out.set(role, { reason, forfeited: false });
  }

  settleDeparture(role: string): void {
    const out = this.#out.get(role);
    if (out !== undefined) this.#out.set(role, { ...out, forfeited: true });
  }

  /** Those of the roles whose turn it is that have not acted and have not given up. */
  mayAct(due: readonly string[]): string[] {
    return due.filter((role) => !this.waiting.has(role) && !this.#out.has(role));
  }

  isOver(due: readonly string[]): boolean {
    if (due.length === 0) return true;
    return this.#failed() !== null && (!this.#roles.scoresOthers || this.mayAct(due).length === 0);
  }

  /** Why nobody can go on; null if the environment's own rules have ended the episode. */
  whyOver(): string | null {
    const failed = this.#failed();
    return failed === null ? null : this.#describe(failed);
  }

  /** Why the role may not act; null if it may. */
  refusalOf(role: string, due: readonly string[]): string | null {
    if (this.#out.has(role)) return `you cannot act any more: ${this.#describe(role)}`;
    if (this.isOver(due)) return `the episode is over${this.whyOver() === null ? "" : `: ${this.whyOver()}`}`;
    const others = this.mayAct(due);
    if (this.waiting.has(role)) return `you have acted; wait for ${others.join(" and ")}`;
    if (due.includes(role)) return null;
    return `it is ${others.map((other) => `${other}'s`).join(" and ")} turn`;
  }

  /** A valid move of the role: its turn is over, or a new one begins. */
  noteMove(role: string): void {
    this.#since.delete(role);
    this.#spentBefore.delete(role);
  }

  /** True if the role has now made more invalid moves than it may. */
  noteInvalidMove(role: string): boolean {
    const count = (this.#invalidMoves.get(role) ?? 0) + 1;
    this.#invalidMoves.set(role, count);
    return count > (this.#roles.definitions[role]?.maxInvalidMoves ?? Number.POSITIVE_INFINITY);
  }

  /** Starts and stops the clocks of turns. */
  noteTurns(may: readonly string[]): void {
    for (const role of this.#roles.names) {
      if (!may.includes(role)) this.noteMove(role);
      else if (!this.#since.has(role) && this.#limitOf(role) !== null) this.#since.set(role, this.#now());
    }
  }

  /** Milliseconds until the first turn has taken too long; null if none has a limit. */
  untilLimit(): number | null {
    const left = [...this.#since.keys()].map((role) => (this.#limitOf(role) ?? 0) - this.#spent(role));
    return left.length === 0 ? null : Math.max(0, Math.min(...left));
  }

  /** Roles whose turn has taken too long. */
  late(): string[] {
    return [...this.#since.keys()].filter((role) => this.#spent(role) >= (this.#limitOf(role) ?? 0));
  }

  /** Why the role has no score whatever the rewards say; null if they decide. */
  unscored(role: string): Unscored | null {
    const own = this.#out.get(role);
    const failed = own !== undefined && !own.forfeited ? role : this.#roles.scoresOthers ? null : this.#failed();
    if (failed === null) return null;
    const { reason } = this.#out.get(failed) as Departure;
    const message = `${this.#describe(failed)}, and the environment defines no 'forfeit'`;
    return { kind: "unscored", cause: reason === "time" ? "timeout" : "agent", stage: "play", retryable: false, message };
  }

  record(): TurnRecord {
    return {
      ...this.facts(),
      spent_ms: Object.fromEntries([...this.#since.keys()].map((role) => [role, this.#spent(role)])),
      has_started: this.#hasStarted,
    };
  }

  /** What two equal episodes have in common: all but times. */
  facts(): Pick<TurnRecord, "waiting" | "invalid_moves" | "out"> {
    return {
      waiting: Object.fromEntries(this.waiting),
      invalid_moves: Object.fromEntries(this.#invalidMoves),
      out: Object.fromEntries(this.#out),
    };
  }

  /** A role without which the game cannot go on as its rules say. */
  #failed(): string | null {
    for (const [role, { forfeited }] of this.#out) if (!forfeited) return role;
    return null;
  }

  #limitOf(role: string): number | null {
    return this.#roles.definitions[role]?.turnTimeoutMs ?? null;
  }

  #spent(role: string): number {
    const since = this.#since.get(role);
    return (this.#spentBefore.get(role) ?? 0) + (since === undefined ? 0 : this.#now() - since);
  }

  #describe(role: string): string {
    const { turnTimeoutMs, maxInvalidMoves } = this.#roles.definitions[role] ?? {};
    switch (this.#out.get(role)?.reason) {
      case "time":
        return `${role} has taken longer than ${turnTimeoutMs === undefined ? "it may" : `${turnTimeoutMs} ms`} for a turn`;
      case "invalid_moves":
        return `${role} has made more than ${maxInvalidMoves ?? 0} invalid moves`;
      default:
        return `${role} has left`;
    }
  }
}
