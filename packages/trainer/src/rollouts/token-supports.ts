import type { TokenSupport } from "@aenv/rollout";

const MAX_OWNERS = 1_000;
const MAX_ENDPOINTS_PER_OWNER = 1_000;

/**
 * Which endpoints refuse requests for tokens, for rollouts with `tokens: "auto"`. It is remembered per owner: what one owner's endpoint or
 * key answers must not turn off the tokens of another owner. The oldest entries of an owner, and the owners unused for longest, are forgotten.
 */
export class TokenSupports {
  readonly #byOwner = new Map<string, Map<string, TokenSupport>>();

  get owners(): number {
    return this.#byOwner.size;
  }

  of(owner: string, baseUrl: string): TokenSupport {
    const endpoints = this.#byOwner.get(owner) ?? new Map<string, TokenSupport>();
    // A map keeps the order of insertion, so the first owner is the one unused for longest.
    this.#byOwner.delete(owner);
    this.#byOwner.set(owner, endpoints);
    const support = endpoints.get(baseUrl) ?? { isRefused: false };
    endpoints.set(baseUrl, support);
    removeFirst(endpoints, MAX_ENDPOINTS_PER_OWNER);
    removeFirst(this.#byOwner, MAX_OWNERS);
    return support;
  }
}

function removeFirst(map: Map<string, unknown>, max: number): void {
  if (map.size <= max) return;
  const [first] = map.keys();
  if (first !== undefined) map.delete(first);
}
