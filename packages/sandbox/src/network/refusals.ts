import { REFUSED_SECONDS } from "./rules.ts";

/** A connection that a sandbox's policy did not allow. */
export interface Refusal {
  /** The name of the sandbox's network. */
  readonly network: string;
  /** A host name, or an address. */
  readonly host: string;
  /** Null if only the name was looked up. */
  readonly port: number | null;
}

const MAX_PER_NETWORK = 20;

/** Passes on each refusal once a minute, and few of one sandbox. */
export class Refusals {
  readonly #report: (refusal: Refusal) => void;
  readonly #now: () => number;
  #seen = new Map<string, Set<string>>();
  #minute = 0;

  constructor(report: (refusal: Refusal) => void, now: () => number = Date.now) {
    this.#report = report;
    this.#now = now;
  }

  add(refusal: Refusal): void {
    const minute = Math.floor(this.#now() / (REFUSED_SECONDS * 1_000));
    if (minute !== this.#minute) this.#seen = new Map();
    this.#minute = minute;
    const seen = this.#seen.get(refusal.network) ?? new Set();
    this.#seen.set(refusal.network, seen);
    const key = `${refusal.host}:${refusal.port}`;
    if (seen.has(key) || seen.size >= MAX_PER_NETWORK) return;
    seen.add(key);
    this.#report(refusal);
  }
}

/** The refused packets in `nft -j list set`. */
export function parseRefused(json: string): Refusal[] {
  const { nftables = [] } = JSON.parse(json) as { nftables?: readonly { set?: { elem?: readonly unknown[] } }[] };
  return nftables.flatMap(({ set }) => (set?.elem ?? []).flatMap((element) => parseElement(element) ?? []));
}

function parseElement(element: unknown): Refusal | null {
  const { elem } = element as { elem?: { val?: { concat?: readonly unknown[] } } };
  const [network, host, port] = elem?.val?.concat ?? [];
  return typeof network === "string" && typeof host === "string" && typeof port === "number" ? { network, host, port } : null;
}
